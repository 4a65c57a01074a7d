import { rideThroughSuite } from './ride_through_suite.ts';

rideThroughSuite('aiokafka', [{ protocol: 'classic', members: 2 }]).run();
