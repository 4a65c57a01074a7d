import { groupSuite } from './group_suite.ts';

groupSuite('kafkajs').run();
