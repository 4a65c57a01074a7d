import { furtherSuite } from './further_suite.ts';

furtherSuite('kafkajs', /larger than the max message size/i).run();
