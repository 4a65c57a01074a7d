import { rideThroughSuite } from './ride_through_suite.ts';

rideThroughSuite('franz', [{ protocol: 'classic', members: 2 }]).run();
