/** The consumer over bad networks, before Kafka itself; before this broker it is a scenario. */
import { runConsumerRoughSuite } from '../harness/consumer_rough_suite.ts';
import { kafkaLauncher } from './kafka_broker.ts';

runConsumerRoughSuite('Kafka', kafkaLauncher());
