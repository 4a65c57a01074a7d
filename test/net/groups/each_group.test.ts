import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eachGroup } from '../../../net/groups/each_group.ts';

const test = suite('each group');

test('answers keep their order, and others have their turn in between', async () => {
  let underWay = 0;
  let most = 0;
  const list = Array.from({ length: 1_050 }, (_, k) => k);
  let othersAtEnd = -1;
  let others = 0;
  const other = (): void => {
    others += 1;
    if (othersAtEnd < 0) setImmediate(other);
  };
  setImmediate(other);
  const answers = await eachGroup(list, async (k) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await null;
    underWay -= 1;
    return `group ${k}`;
  });
  othersAtEnd = others;
  assert(othersAtEnd >= 5, `others had ${othersAtEnd} turns`);
  assert.deepEqual(
    answers,
    list.map((k) => `group ${k}`),
  );
  assert.equal(most, 100);
  assert.deepEqual(await eachGroup([], () => Promise.reject(new Error('nobody asks'))), []);
});

test.run();
