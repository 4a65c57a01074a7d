import { runConsumerSuite } from '../../../harness/consumer_suite.ts';

runConsumerSuite('Millrace', undefined);
