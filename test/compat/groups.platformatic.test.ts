import { groupSuite } from './group_suite.ts';

groupSuite('platformatic').run();
