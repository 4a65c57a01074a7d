import { groupSuite } from './group_suite.ts';

groupSuite('sarama', { statics: true }).run();
