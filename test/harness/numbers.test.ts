import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { assertMerged } from './numbers.ts';

const test = suite('numbers');

async function* of(...runs: number[][]): AsyncGenerator<number[], undefined> {
  yield* runs;
  return undefined;
}

test('partitions in which every number stands once, in order', async () => {
  await assertMerged([of([0, 1], [4], [], [5, 8]), of(), of([2, 3, 6], [7])], 9);
});

/** What must not pass, by what is wrong with it. */
const wrong: Readonly<Record<string, number[][]>> = {
  'one is lost': [[0, 1, 4], [3]],
  'the last is lost': [
    [0, 1],
    [2, 3],
  ],
  'the last of two is there twice': [
    [0, 1, 4, 4],
    [2, 3],
  ],
  'one is there twice, in another partition': [
    [0, 1, 4],
    [1, 2, 3],
  ],
  'one is there twice, later': [
    [0, 1, 4],
    [2, 3, 2],
  ],
  'two have changed places': [
    [1, 0, 4],
    [2, 3],
  ],
  'one too many': [
    [0, 1, 4],
    [2, 3, 5],
  ],
};
for (const [what, partitions] of Object.entries(wrong))
  test(what, async () => {
    await assert.rejects(
      assertMerged(
        partitions.map((one) => of(one)),
        5,
      ),
      /due/,
    );
  });

test.run();
