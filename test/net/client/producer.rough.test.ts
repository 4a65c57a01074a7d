/** `MILLRACE_RECORDS=10000000` sends as many through connections that are cut at random. */
import { runRoughSuite } from '../../harness/rough_suite.ts';

runRoughSuite('Millrace', undefined, Number(process.env['MILLRACE_RECORDS'] ?? 200_000));
