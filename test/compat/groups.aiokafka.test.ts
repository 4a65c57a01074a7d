import { groupSuite } from './group_suite.ts';

groupSuite('aiokafka', { statics: true }).run();
