import { furtherSuite } from './further_suite.ts';

furtherSuite('java_old', /RecordTooLargeException/i).run();
