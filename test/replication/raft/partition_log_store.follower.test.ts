/** The metadata log's store as a follower uses it: batches of several terms, cut where histories part. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { NodeDisk, nodeClock, nodeRandom } from '../../../engine/node_ports.ts';
import { encodeDataBatch, forEachBatch } from '../../../replication/raft/metadata_batch.ts';
import { PartitionLogStore } from '../../../replication/raft/partition_log_store.ts';

const test = suite('partition_log_store of a follower');
const root = mkdtempSync(join(tmpdir(), 'metadata-follower-'));
test.after(() => rmSync(root, { recursive: true }));

function open(logDir: string): Promise<PartitionLogStore> {
  return PartitionLogStore.open({
    disk: new NodeDisk(),
    clock: nodeClock,
    random: nodeRandom,
    logDir,
    recoveryPoint: 0,
    cleanShutdown: false,
    afterPowerLoss: true,
    dropCache: false,
    snapshotEndOffset: 0,
    defer: (run) => setImmediate(run),
  });
}

/** Appends a batch of two records in each of the terms. */
function append(store: PartitionLogStore, epochs: readonly number[]): void {
  for (const epoch of epochs) {
    const values = [Buffer.from(`${epoch}a`), Buffer.from(`${epoch}b`)];
    store.append(encodeDataBatch(values, store.endOffset, epoch, 1_700_000_000_000));
  }
}

function batchesOf(store: PartitionLogStore, from = 0): [offset: number, epoch: number][] {
  const found: [number, number][] = [];
  for (let offset = from; offset < store.endOffset; )
    forEachBatch(store.read(offset, store.endOffset, 1), (batch) => {
      found.push([batch.firstOffset, batch.epoch]);
      offset = batch.lastOffset + 1;
    });
  return found;
}

test('knows where each term ends', async () => {
  const store = await open(mkdtempSync(join(root, 'a-')));
  append(store, [1, 1, 3, 5]);
  await store.flush();
  assert.deepEqual(store.endOffsetForEpoch(1), { epoch: 1, endOffset: 4 });
  assert.deepEqual(store.endOffsetForEpoch(2), { epoch: 1, endOffset: 4 });
  assert.deepEqual(store.endOffsetForEpoch(3), { epoch: 3, endOffset: 6 });
  assert.deepEqual(store.endOffsetForEpoch(5), { epoch: 5, endOffset: 8 });
  assert.deepEqual(store.endOffsetForEpoch(6), { epoch: -1, endOffset: -1 });
  await store.close();
});

test('reads whole batches, one at least, and none past the bound', async () => {
  const store = await open(mkdtempSync(join(root, 'b-')));
  append(store, [1, 1, 2]);
  await store.flush();
  const firstOffsets = (bytes: Uint8Array): number[] => {
    const found: number[] = [];
    forEachBatch(bytes, ({ firstOffset }) => found.push(firstOffset));
    return found;
  };
  assert.deepEqual(firstOffsets(store.read(0, 6, 1)), [0]);
  assert.deepEqual(firstOffsets(store.read(0, 4, 1_000)), [0, 2]);
  assert.deepEqual(firstOffsets(store.read(2, 6, 1_000)), [2, 4]);
  assert.equal(store.read(6, 6, 1_000).length, 0);
  await store.close();
});

test('what was cut stays cut, and another history goes on there, over a stop without goodbye', async () => {
  const dir = mkdtempSync(join(root, 'c-'));
  const store = await open(dir);
  append(store, [1, 2, 2]);
  await store.flush();
  store.truncate(2);
  assert.equal(store.endOffset, 2);
  assert.equal(store.lastEpoch, 1);
  append(store, [3]);
  await store.flush();
  assert.deepEqual(batchesOf(store), [
    [0, 1],
    [2, 3],
  ]);
  const again = await open(dir);
  assert.deepEqual(batchesOf(again), [
    [0, 1],
    [2, 3],
  ]);
  assert.equal(again.lastEpoch, 3);
  await again.close();
});

test('a flush that was waited for ends although what it was to cover is cut', async () => {
  const store = await open(mkdtempSync(join(root, 'd-')));
  append(store, [1]);
  await store.flush();
  append(store, [2, 2]);
  const flushed = store.flush();
  store.truncate(2);
  await flushed;
  append(store, [3]);
  await store.flush();
  assert.deepEqual(batchesOf(store, 2), [[2, 3]]);
  await store.close();
});

test('all of it can be cut', async () => {
  const store = await open(mkdtempSync(join(root, 'e-')));
  append(store, [1, 1]);
  await store.flush();
  store.truncate(0);
  assert.equal(store.endOffset, 0);
  assert.equal(store.lastEpoch, 0);
  append(store, [2]);
  await store.flush();
  assert.deepEqual(batchesOf(store), [[0, 2]]);
  await store.close();
});

test.run();
