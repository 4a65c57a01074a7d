/** The producer over bad networks, before Kafka itself: fewer records than before this broker, since its start is slow. */
import { runRoughSuite } from '../harness/rough_suite.ts';
import { kafkaLauncher } from './kafka_broker.ts';

runRoughSuite('Kafka', kafkaLauncher(), Number(process.env['MILLRACE_RECORDS'] ?? 50_000));
