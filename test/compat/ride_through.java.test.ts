import { rideThroughSuite } from './ride_through_suite.ts';

rideThroughSuite('java', [
  { protocol: 'classic', members: 2 },
  { protocol: 'consumer', members: 2 },
]).run();
