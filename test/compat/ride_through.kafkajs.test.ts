import { rideThroughSuite } from './ride_through_suite.ts';

rideThroughSuite('kafkajs', [{ protocol: 'classic', members: 2 }]).run();
