import { furtherSuite } from './further_suite.ts';

furtherSuite('segmentio', /Message Size Too Large/i).run();
