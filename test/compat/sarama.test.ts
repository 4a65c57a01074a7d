import { furtherSuite } from './further_suite.ts';

furtherSuite('sarama', /too large/i).run();
