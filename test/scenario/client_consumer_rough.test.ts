import { runConsumerRoughSuite } from '../harness/consumer_rough_suite.ts';

runConsumerRoughSuite('Millrace', undefined);
