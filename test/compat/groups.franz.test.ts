import { groupSuite } from './group_suite.ts';

groupSuite('franz', { cooperative: true, statics: true }).run();
