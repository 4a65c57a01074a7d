import { runConsumerGroupSuite } from '../../../harness/consumer_group_suite.ts';

runConsumerGroupSuite('Millrace', undefined);
