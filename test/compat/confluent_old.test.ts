import { furtherSuite } from './further_suite.ts';

furtherSuite('confluent_old', /too large/i).run();
