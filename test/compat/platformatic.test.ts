import { furtherSuite } from './further_suite.ts';

furtherSuite('platformatic', /larger than the max message size/i).run();
