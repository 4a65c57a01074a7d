import { furtherSuite } from './further_suite.ts';

furtherSuite('kafka_python', /MessageSizeTooLarge/i).run();
