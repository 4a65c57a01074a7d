import { furtherSuite } from './further_suite.ts';

furtherSuite('aiokafka', /MessageSizeTooLarge/i).run();
