/** The producer's suite against Kafka itself and against this broker, in one job. */
import { runProducerSuite } from '../harness/producer_suite.ts';
import { kafkaLauncher } from './kafka_broker.ts';

runProducerSuite('Kafka', kafkaLauncher());
runProducerSuite('Millrace', undefined);
