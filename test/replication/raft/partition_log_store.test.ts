import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { NodeDisk, nodeClock, nodeRandom } from '../../../engine/node_ports.ts';
import { type Disk, DiskError } from '../../../engine/ports.ts';
import type { MetadataBatch, MetadataRecord } from '../../../replication/metadata/records.ts';
import { FileStateStore } from '../../../replication/raft/file_state_store.ts';
import {
  metadataLogPath,
  PartitionLogStore,
} from '../../../replication/raft/partition_log_store.ts';
import type { QuorumListener } from '../../../replication/raft/quorum.ts';
import { parseQuorumState } from '../../../replication/raft/quorum_state.ts';
import type { RaftQuorum } from '../../../replication/raft/raft_quorum.ts';
import { quorumOfOne } from './quorum_of_one.ts';

const test = suite('partition_log_store');
const root = mkdtempSync(join(tmpdir(), 'metadata-log-'));
test.after(() => rmSync(root, { recursive: true }));
let directories = 0;

function newDirectory(): string {
  directories += 1;
  return mkdtempSync(join(root, `${directories}-`));
}

class Life implements QuorumListener {
  readonly quorum: RaftQuorum;
  readonly store: PartitionLogStore;
  readonly records: MetadataRecord[] = [];
  readonly warnings: string[] = [];
  readonly elections: [epoch: number, nextOffset: number][] = [];
  resignations = 0;
  failure: Error | null = null;

  constructor(store: PartitionLogStore, disk: Disk) {
    this.store = store;
    const states = new FileStateStore(disk, store.log.dir);
    this.quorum = quorumOfOne(store, states, (message) => this.warnings.push(message));
  }

  onCommitted(batch: MetadataBatch): void {
    this.records.push(...batch.records);
  }

  onElected(epoch: number, nextOffset: number): void {
    this.elections.push([epoch, nextOffset]);
  }

  onResigned(): void {
    this.resignations += 1;
  }

  onFailed(error: Error): void {
    this.failure = error;
  }

  async until(done: () => boolean): Promise<void> {
    for (let turn = 0; !done(); turn += 1) {
      assert(turn < 100_000, 'never happened');
      await new Promise(setImmediate);
    }
  }
}

async function open(
  logDir: string,
  disk: Disk = new NodeDisk(),
  overrides: { recoveryPoint?: number; cleanShutdown?: boolean } = {},
): Promise<Life> {
  const store = await PartitionLogStore.open({
    disk,
    clock: nodeClock,
    random: nodeRandom,
    logDir,
    recoveryPoint: 0,
    cleanShutdown: false,
    afterPowerLoss: true,
    dropCache: false,
    snapshotEndOffset: 0,
    defer: (run) => setImmediate(run),
    ...overrides,
  });
  const life = new Life(store, disk);
  await life.quorum.start(life);
  return life;
}

function config(name: string): MetadataRecord {
  return { type: 'ConfigRecord', resourceType: 4, resourceName: '', name, value: name };
}

function segmentOf(dir: string): string {
  return join(metadataLogPath(dir), '00000000000000000000.log');
}

test('what was committed is there after a clean stop, in a new term', async () => {
  const dir = newDirectory();
  const first = await open(dir);
  first.quorum.append([config('a'), config('b')]);
  await first.quorum.close();
  assert.deepEqual(first.records, [config('a'), config('b')]);
  const { recoveryPoint } = first.store.log;
  assert.equal(recoveryPoint, 5);
  const second = await open(dir, new NodeDisk(), { recoveryPoint, cleanShutdown: true });
  assert.deepEqual(second.records, [config('a'), config('b')]);
  assert.deepEqual(second.elections, [[2, 6]]);
  const state = parseQuorumState(
    new FileStateStore(new NodeDisk(), second.store.log.dir).load() ?? '',
  );
  assert.equal(state?.leaderEpoch, 2);
  await second.quorum.close();
});

test('a stop without goodbye costs a torn tail only', async () => {
  const dir = newDirectory();
  const first = await open(dir);
  first.quorum.append([config('a')]);
  await first.until(() => first.records.length === 1);
  const { size } = statSync(segmentOf(dir));
  first.quorum.append([config('b')]);
  await first.until(() => first.records.length === 2);
  truncateSync(segmentOf(dir), size + 20);
  const second = await open(dir);
  assert.deepEqual(second.records, [config('a')]);
  assert.deepEqual(second.warnings, []);
  await second.quorum.close();
});

test('a log that lacks what was on disk once is refused', async () => {
  const dir = newDirectory();
  const first = await open(dir);
  first.quorum.append([config('a')]);
  await first.quorum.close();
  const { recoveryPoint } = first.store.log;
  truncateSync(segmentOf(dir), 100);
  await assert.rejects(
    open(dir, new NodeDisk(), { recoveryPoint }),
    /metadata log in .* cannot be used/,
  );
});

test('damage with valid batches behind it is refused, not cut', async () => {
  const dir = newDirectory();
  const first = await open(dir);
  for (const name of ['a', 'b', 'c']) {
    first.quorum.append([config(name)]);
    await first.until(() => first.records.at(-1)?.type === 'ConfigRecord');
  }
  await first.quorum.close();
  writeFileSync(segmentOf(dir), 'damage', { flag: 'r+' });
  const { size } = statSync(segmentOf(dir));
  await assert.rejects(open(dir), /cannot be used: it is damaged/);
  assert.equal(statSync(segmentOf(dir)).size, size);
});

test('a full disk costs the changes at hand; afterwards it goes on in the same term', async () => {
  const dir = newDirectory();
  const disk = new FillableDisk();
  const life = await open(dir, disk);
  life.quorum.append([config('a')]);
  await life.until(() => life.records.length === 1);
  disk.state = 'full';
  life.quorum.append([config('b')]);
  life.quorum.append([config('c')]);
  await life.until(() => life.elections.length === 2);
  assert.equal(life.resignations, 1);
  assert.equal(life.warnings.length, 1);
  assert.deepEqual(life.elections[1], [1, 4]);
  disk.state = 'well';
  assert.equal(life.quorum.append([config('d')]), 4);
  await life.until(() => life.records.length === 2);
  assert.equal(life.failure, null);
  await life.quorum.close();
  const again = await open(dir);
  assert.deepEqual(again.records, [config('a'), config('d')]);
  await again.quorum.close();
});

test('a failed write ends it for good', async () => {
  const dir = newDirectory();
  const disk = new FillableDisk();
  const life = await open(dir, disk);
  life.quorum.append([config('a')]);
  await life.until(() => life.records.length === 1);
  disk.state = 'broken';
  life.quorum.append([config('b')]);
  await life.until(() => life.failure !== null);
  assert.equal(life.quorum.leaderId, -1);
  assert.deepEqual(life.records, [config('a')]);
});

test('a checkpoint moves the recovery point up', async () => {
  const life = await open(newDirectory());
  life.quorum.append([config('a')]);
  await life.until(() => life.records.length === 1);
  assert.equal(life.store.log.recoveryPoint, 0);
  await life.store.checkpoint();
  assert.equal(life.store.log.recoveryPoint, 4);
  await life.quorum.close();
});

/** A real disk that can be told to have no room, or to be broken. */
class FillableDisk extends NodeDisk {
  state: 'well' | 'full' | 'broken' = 'well';

  override write(...args: Parameters<NodeDisk['write']>): void {
    this.#check();
    super.write(...args);
  }

  override writev(...args: Parameters<NodeDisk['writev']>): void {
    this.#check();
    super.writev(...args);
  }

  #check(): void {
    if (this.state === 'full') throw new DiskError('ENOSPC', 'no space left on device');
    if (this.state === 'broken') throw new DiskError('EIO', 'input/output error');
  }
}

test.run();
