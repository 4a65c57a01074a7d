import { groupSuite } from './group_suite.ts';

groupSuite('java', { cooperative: true, statics: true, consumer: true }).run();
