import { furtherSuite } from './further_suite.ts';

furtherSuite('confluent', /too large/i).run();
