/** How long the write of an offset commit may wait for others. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { CoordinatorDriver } from './coordinator_driver.ts';

const test = suite('offset_commit');

/** Commits partition 0 (or others) and says how long its write may wait. */
function lingerOf(driver: CoordinatorDriver, ...partitions: readonly number[]): number {
  driver.commitsAtOnce = false;
  const all = partitions.map((partitionIndex) => ({
    partitionIndex,
    committedOffset: 1n,
    committedLeaderEpoch: -1,
    committedMetadata: '',
  }));
  driver.commitOffset(1n, { topics: [{ name: 't', topicId: 'T', partitions: all }] });
  const { lingerMs } = driver.appends[0] ?? {};
  assert(lingerMs !== undefined);
  driver.commit();
  return lingerMs;
}

test('a commit waits a hundredth of the time since the last one of its partition, 20 ms at most', () => {
  const driver = new CoordinatorDriver();
  assert.equal(lingerOf(driver, 0), 0, 'nothing is known of who commits for the first time');
  const pauses: readonly (readonly [number, number])[] = [
    [50, 0],
    [100, 1],
    [1_000, 10],
    [5_000, 20],
    [60_000, 20],
  ];
  for (const [pauseMs, lingerMs] of pauses) {
    driver.advance(pauseMs);
    assert.equal(lingerOf(driver, 0), lingerMs, `after ${pauseMs} ms`);
  }
});

test('of several partitions the one that was committed last counts', () => {
  const driver = new CoordinatorDriver();
  lingerOf(driver, 0);
  driver.advance(1_000);
  lingerOf(driver, 1);
  driver.advance(500);
  assert.equal(lingerOf(driver, 0, 1), 5);
  assert.equal(lingerOf(driver, 0, 2), 0);
});

test('group.coordinator.append.linger.ms says it for all commits', () => {
  for (const appendLingerMs of [0, 7]) {
    const driver = new CoordinatorDriver({ appendLingerMs });
    assert.equal(lingerOf(driver, 0), appendLingerMs);
    driver.advance(5_000);
    assert.equal(lingerOf(driver, 0), appendLingerMs);
  }
});

test('what changes a group waits for nobody', () => {
  const driver = new CoordinatorDriver({ appendLingerMs: 7 });
  driver.commitsAtOnce = false;
  const { memberId, generationId } = driver.join().body;
  driver.sync(memberId, generationId, { [memberId]: 'all' });
  assert.deepEqual(
    driver.appends.map(({ lingerMs }) => lingerMs),
    [0],
  );
});

test.run();
