/** As many histories of whole clusters as tell something about how often each fault occurs; see `cluster.test.ts`. */
import { suite } from 'uvu';
import { checkEnough, report, runHistories } from './cluster/histories.ts';

const test = suite('many histories of clusters');
const seeds = 300;

test('have every kind of fault in them, and keep what was promised', async () => {
  const totals = await runHistories(1_001, seeds, { triesMax: 60, lines: 80 });
  report(totals);
  checkEnough(totals, seeds);
});

test.run();
