import { groupSuite } from './group_suite.ts';

groupSuite('segmentio').run();
