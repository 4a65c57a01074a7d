import { furtherSuite } from './further_suite.ts';

furtherSuite('rdkafka', /too.?large/i).run();
