import { groupSuite } from './group_suite.ts';

groupSuite('python', { cooperative: true, statics: true, consumer: true }).run();
