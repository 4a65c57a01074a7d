/** The consumer's suite against Kafka itself and against this broker, in one job. */
import { runConsumerGroupSuite } from '../harness/consumer_group_suite.ts';
import { runConsumerSuite } from '../harness/consumer_suite.ts';
import { kafkaLauncher } from './kafka_broker.ts';

runConsumerSuite('Kafka', kafkaLauncher());
runConsumerGroupSuite('Kafka', kafkaLauncher());
runConsumerSuite('Millrace', undefined);
runConsumerGroupSuite('Millrace', undefined);
