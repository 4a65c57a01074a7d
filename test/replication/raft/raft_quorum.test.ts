import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { metadataCodec } from '../../../net/metadata_codec.ts';
import {
  type MetadataBatch,
  type MetadataRecord,
  uuidZero,
  type Voter,
} from '../../../replication/metadata/records.ts';
import {
  encodeControlBatch,
  encodeDataBatch,
  forEachBatch,
} from '../../../replication/raft/metadata_batch.ts';
import type { QuorumListener } from '../../../replication/raft/quorum.ts';
import { formatQuorumState, parseQuorumState } from '../../../replication/raft/quorum_state.ts';
import type { RaftQuorum } from '../../../replication/raft/raft_quorum.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { uuids } from '../metadata/fixtures.ts';
import { loneVoter, quorumOfOne } from './quorum_of_one.ts';
import { SimulatedStore } from './simulated_store.ts';

const test = suite('raft_quorum');

const voter = loneVoter;

class Life implements QuorumListener {
  readonly quorum: RaftQuorum;
  readonly committed: MetadataBatch[] = [];
  readonly warnings: string[] = [];
  elected: { epoch: number; nextOffset: number } | null = null;
  failure: Error | null = null;

  constructor(store: SimulatedStore, self: Voter = voter) {
    this.quorum = quorumOfOne(store, store, (message) => this.warnings.push(message), self);
  }

  onCommitted(batch: MetadataBatch): void {
    this.committed.push(batch);
  }

  onElected(epoch: number, nextOffset: number): void {
    this.elected = { epoch, nextOffset };
  }

  onResigned(): void {
    assert.fail('a single voter never resigns');
  }

  onFailed(error: Error): void {
    this.failure = error;
  }

  get records(): MetadataRecord[] {
    return this.committed.flatMap((batch) => batch.records);
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 30; turn += 1) await Promise.resolve();
  }
}

async function started(store: SimulatedStore): Promise<Life> {
  const life = new Life(store);
  await life.quorum.start(life);
  return life;
}

function config(value: number): MetadataRecord {
  const name = `${value}`;
  return { type: 'ConfigRecord', resourceType: 4, resourceName: '', name, value: name };
}

test('the first batch names leader, version and voters; the vote file has the term before it', async () => {
  const store = new SimulatedStore(splitMix(1));
  const life = await started(store);
  assert.deepEqual(life.elected, { epoch: 1, nextOffset: 3 });
  assert.deepEqual(parseQuorumState(store.stateText ?? ''), {
    leaderId: 1,
    leaderEpoch: 1,
    votedId: 1,
    votedDirectoryId: voter.voterDirectoryId,
  });
  const kinds: (string | undefined)[] = [];
  forEachBatch(store.read(0, store.endOffset, 1 << 20), (batch) => {
    assert(batch.isControl);
    for (const { key, value } of batch.records)
      kinds.push(metadataCodec.decodeControl(key, value)?.type);
  });
  assert.deepEqual(kinds, ['LeaderChange', 'KRaftVersion', 'Voters']);
});

test('nothing is committed before the flush, and one turn’s appends share one', async () => {
  const store = new SimulatedStore(splitMix(2));
  const life = await started(store);
  await life.settle();
  const { flushes } = store;
  assert.equal(life.quorum.append([config(1), config(2)]), 4);
  assert.equal(life.quorum.append([config(3)]), 5);
  assert.equal(life.quorum.committedOffset, 2);
  await life.settle();
  assert.equal(life.quorum.committedOffset, 5);
  assert.equal(store.flushes, flushes + 1);
  assert.deepEqual(
    life.committed.map(({ firstOffset, lastOffset, epoch }) => [firstOffset, lastOffset, epoch]),
    [
      [0, 2, 1],
      [3, 4, 1],
      [5, 5, 1],
    ],
  );
});

test('a restart replays everything and leads in a higher term', async () => {
  const store = new SimulatedStore(splitMix(3));
  const first = await started(store);
  first.quorum.append([config(1), config(2)]);
  await first.quorum.close();
  const second = await started(store);
  assert.deepEqual(second.records, [config(1), config(2)]);
  assert.deepEqual(second.elected, { epoch: 2, nextOffset: 6 });
  assert.deepEqual(second.warnings, []);
});

test('a log of Kafka’s that names no voters (kraft.version 0) is led by its only configured one', async () => {
  const store = new SimulatedStore(splitMix(9));
  const leader = { type: 'LeaderChange', leaderId: 1, voters: [voter] } as const;
  store.append(encodeControlBatch([metadataCodec.encodeControl(leader)], 0, 4, 0));
  store.append(encodeDataBatch([metadataCodec.encode(config(1))], 1, 4, 0));
  await store.flush();
  await store.save(
    formatQuorumState({ leaderId: 1, leaderEpoch: 4, votedId: 1, votedDirectoryId: uuidZero }),
  );
  const life = await started(store);
  assert.deepEqual(life.elected, { epoch: 5, nextOffset: 3 });
  assert.deepEqual(life.records, [config(1)]);
  life.quorum.append([config(2)]);
  await life.settle();
  assert.deepEqual(life.records, [config(1), config(2)]);
});

test('a failed flush commits nothing, is reported once, and ends the term', async () => {
  const store = new SimulatedStore(splitMix(4));
  const life = await started(store);
  await life.settle();
  store.failFlushes();
  life.quorum.append([config(1)]);
  await life.settle();
  assert.match(life.failure?.message ?? '', /flush failed/);
  assert.equal(life.quorum.committedOffset, 2);
  assert.equal(life.quorum.leaderId, -1);
  assert.throws(() => life.quorum.append([config(2)]), /failed/);
});

for (const text of [null, '', '{"leaderEpoch":', '{"data_version":7}'])
  test(`a vote file that is ${text === null ? 'lost' : `'${text}'`} costs no safety`, async () => {
    const store = new SimulatedStore(splitMix(5));
    for (let start = 1; start <= 3; start += 1) await (await started(store)).quorum.close();
    store.stateText = text;
    const life = await started(store);
    assert.equal(life.elected?.epoch, 4);
    assert.equal(life.warnings.length, 1);
  });

test('another node’s log is refused, and nothing is written to it', async () => {
  const store = new SimulatedStore(splitMix(6));
  await (await started(store)).quorum.close();
  const { endOffset, stateText } = store;
  for (const other of [
    { ...voter, voterId: 2 },
    { ...voter, voterDirectoryId: uuids(6)() },
  ]) {
    const life = new Life(store, other);
    await assert.rejects(life.quorum.start(life), /belongs to the voters node 1/);
    assert.equal(life.elected, null);
  }
  assert.equal(store.endOffset, endOffset);
  assert.equal(store.stateText, stateText);
});

test('a damaged batch in the log is found, whatever the byte', async () => {
  const store = new SimulatedStore(splitMix(7));
  const first = await started(store);
  first.quorum.append([config(1)]);
  await first.quorum.close();
  const { endOffset } = store;
  const log = Buffer.from(store.read(0, endOffset, 1 << 20));
  for (let at = 0; at < log.length; at += 1) {
    const damaged = Buffer.from(log);
    damaged[at] = damaged[at]! ^ 0x10;
    // The leader epoch stands outside of the checksum: only its order can be checked.
    if (isEpochByte(log, at)) continue;
    const life = new Life(new DamagedStore(damaged, endOffset));
    await assert.rejects(life.quorum.start(life), /damaged/, `byte ${at}`);
  }
});

class DamagedStore extends SimulatedStore {
  readonly #bytes: Uint8Array;
  readonly #endOffset: number;

  constructor(bytes: Uint8Array, endOffset: number) {
    super(splitMix(1));
    this.#bytes = bytes;
    this.#endOffset = endOffset;
    this.stateText = '{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":1}';
  }

  override get endOffset(): number {
    return this.#endOffset;
  }

  override read(): Uint8Array {
    return this.#bytes;
  }
}

function isEpochByte(log: Buffer, at: number): boolean {
  for (let start = 0; start < log.length; start += 12 + log.readInt32BE(start + 8))
    if (at >= start + 12 && at < start + 16) return true;
  return false;
}

test('committed records survive power cuts, in order; terms grow and no two are alike (300 seeds)', async () => {
  let cuts = 0;
  let lost = 0;
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = splitMix(seed);
    const store = new SimulatedStore(splitMix(seed * 7 + 1));
    let promised: MetadataRecord[] = [];
    let epoch = 0;
    let appended = 0;
    for (let start = 0; start < 6; start += 1) {
      const life = new Life(store);
      const starting = life.quorum.start(life);
      for (let step = random(40); step >= 0; step -= 1) {
        if (life.elected !== null && random(3) === 0) {
          const count = 1 + random(3);
          const from = appended;
          appended += count;
          life.quorum.append(Array.from({ length: count }, (_, index) => config(from + index)));
        }
        await Promise.resolve();
      }
      starting.catch((error: unknown) => assert.fail(`seed ${seed}: ${error}`));
      if (life.elected !== null) {
        assert(life.elected.epoch > epoch, `seed ${seed}: term ${life.elected.epoch}`);
        epoch = life.elected.epoch;
      }
      const seen = life.records;
      assert.deepEqual(seen.slice(0, promised.length), promised, `seed ${seed}, start ${start}`);
      promised = seen;
      const { endOffset } = store;
      store.crash();
      cuts += 1;
      if (store.endOffset < endOffset) lost += 1;
    }
    const { epochs } = store;
    for (let at = 1; at < epochs.length; at += 1)
      assert(epochs[at]![1] >= epochs[at - 1]![1], `seed ${seed}: terms go back in the log`);
  }
  assert(cuts === 1_800 && lost > 100, `too little was lost to prove anything: ${lost}`);
});

test.run();
