import { runProducerSuite } from '../../harness/producer_suite.ts';

runProducerSuite('Millrace', undefined);
