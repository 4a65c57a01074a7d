/** Snapshots of a metadata log on a simulated disk: when they are written, what a start makes of them, crashes in between. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { nodeClock } from '../../../engine/node_ports.ts';
import { metadataCodec } from '../../../net/metadata_codec.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import { deltaTo } from '../../../replication/metadata/image_difference.ts';
import {
  ConfigResourceType,
  type MetadataBatch,
  type MetadataDelta,
  type MetadataRecord,
  type MetadataSnapshot,
} from '../../../replication/metadata/records.ts';
import {
  metadataLogPath,
  PartitionLogStore,
} from '../../../replication/raft/partition_log_store.ts';
import type { QuorumListener } from '../../../replication/raft/quorum.ts';
import type { RaftQuorum } from '../../../replication/raft/raft_quorum.ts';
import { newestSnapshot } from '../../../replication/raft/raft_snapshots.ts';
import { SnapshotFiles } from '../../../replication/raft/snapshot_files.ts';
import { SimDisk } from '../../sim/disk.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import { clusterId } from '../metadata/fixtures.ts';
import { loneVoter, quorumOfOne } from './quorum_of_one.ts';

const test = suite('snapshots of the metadata');
const dir = metadataLogPath('/data');

function newDisk(seed = 1): SimDisk {
  const disk = new SimDisk({ seed });
  disk.mkdir('/data');
  disk.flushDirectorySync('/');
  return disk;
}

/** One process with a quorum of its own. */
class Life implements QuorumListener {
  readonly image = new MetadataImage(clusterId);
  readonly warnings: string[] = [];
  /** What was handed out at the start. */
  readonly begun: MetadataDelta[] = [];
  readonly disk: SimDisk;
  failure: Error | null = null;
  quorum: RaftQuorum | null = null;
  #isGone: boolean = false;

  private constructor(disk: SimDisk) {
    this.disk = disk;
  }

  static async start(disk: SimDisk, everyBytes = 1_000): Promise<Life> {
    const life = new Life(disk);
    const warn = (text: string): void => void life.warnings.push(text);
    const files = new SnapshotFiles(disk, dir);
    const loaded = newestSnapshot(files, metadataCodec, warn);
    const defer = (run: () => void): void =>
      void setImmediate(() => {
        if (!life.#isGone) run();
      });
    const opening = PartitionLogStore.open({
      disk,
      clock: nodeClock,
      random: new SeededRandom(1),
      logDir: '/data',
      recoveryPoint: 0,
      cleanShutdown: false,
      afterPowerLoss: true,
      dropCache: false,
      snapshotEndOffset: loaded?.id.endOffset ?? 0,
      defer,
    });
    const store = await life.during(opening);
    const states = { load: () => null, save: () => Promise.resolve() };
    const snapshots = { files, loaded, everyBytes, intervalMs: 0, fetchBytesMax: 1_000, defer };
    const quorum = quorumOfOne(store, states, warn, loneVoter, snapshots);
    await life.during(quorum.start(life));
    life.quorum = quorum;
    return life;
  }

  onCommitted(batch: MetadataBatch): void {
    if (this.quorum === null) this.begun.push(batch);
    this.image.follow(batch);
  }

  onSnapshot(snapshot: MetadataSnapshot): void {
    this.begun.push(snapshot);
    this.image.follow(deltaTo(this.image, snapshot));
  }

  snapshotRecords(): Iterable<MetadataRecord> {
    return this.image.copy().records();
  }

  onElected(): void {}

  onResigned(): void {}

  onFailed(error: Error): void {
    this.failure = error;
  }

  /** Values by number, as they are committed. */
  get values(): ReadonlyMap<string, string> {
    return this.image.configs(ConfigResourceType.topic, 'numbers');
  }

  /** Sets a value; committed some turns later. */
  put(number: number, value: string): void {
    this.quorum!.append([
      {
        type: 'ConfigRecord',
        resourceType: ConfigResourceType.topic,
        resourceName: 'numbers',
        name: `${number % 20}`,
        value,
      },
    ]);
  }

  /** Flushes end, and all that follows from it happens. */
  async turn(): Promise<void> {
    this.disk.endFlushes();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async during<T>(waiting: Promise<T>): Promise<T> {
    let isOver = false;
    const over = waiting.finally(() => {
      isOver = true;
    });
    over.catch(() => {});
    while (!isOver) await this.turn();
    return over;
  }

  async write(from: number, count: number): Promise<void> {
    for (let number = from; number < from + count; number += 1) {
      this.put(number, `value ${number}`);
      const { committedOffset } = this.quorum!;
      while (this.quorum!.committedOffset === committedOffset) await this.turn();
    }
    for (let turn = 0; turn < 20; turn += 1) await this.turn();
  }

  /** The power goes. */
  crash(): void {
    this.#isGone = true;
    this.disk.crash();
  }
}

const entriesOf = (life: Life): string[] =>
  [...life.values]
    .map(([name, value]) => `${name}: ${value}`)
    .sort((one, other) => one.localeCompare(other));
const namesOn = (disk: SimDisk, suffix: string): string[] =>
  (disk.list(dir) ?? [])
    .filter((name) => name.endsWith(suffix))
    .sort((one, other) => one.localeCompare(other));
const snapshotsOn = (disk: SimDisk): string[] => namesOn(disk, '.checkpoint');
const segmentsOn = (disk: SimDisk): string[] => namesOn(disk, '.log');

test('one is written when the log has grown enough; the log before the last but one goes', async () => {
  const disk = newDisk();
  const life = await Life.start(disk);
  await life.write(0, 3);
  assert.deepEqual(snapshotsOn(disk), []);
  await life.write(3, 10);
  const [first] = snapshotsOn(disk);
  assert.match(first ?? '', /^\d{20}-0000000001\.checkpoint$/);
  assert.deepEqual(segmentsOn(disk), ['00000000000000000000.log']);
  await life.write(13, 60);
  assert.equal(snapshotsOn(disk).length, 2);
  assert.notEqual(snapshotsOn(disk)[0], first);
  const segments = segmentsOn(disk);
  assert.notEqual(segments[0], '00000000000000000000.log');
  assert(Number(segments[0]?.slice(0, 20)) <= Number(snapshotsOn(disk)[0]?.slice(0, 20)));
  assert.deepEqual(life.warnings, []);
});

test('a start begins with the newest and goes on with the log behind it', async () => {
  const disk = newDisk();
  const life = await Life.start(disk);
  await life.write(0, 70);
  const before = life.image.snapshot();
  const newest = Number(snapshotsOn(disk).at(-1)?.slice(0, 20));
  life.crash();
  const next = await Life.start(disk);
  assert.equal(next.begun[0]?.snapshot, true);
  assert.equal(next.begun[0]?.lastOffset, newest - 1);
  assert.equal(next.begun.length - 1, before.lastOffset - newest + 1, 'one batch for each record');
  assert.deepEqual(entriesOf(next), entriesOf(life));
  await next.write(70, 5);
  assert.equal(next.values.get('14'), 'value 74');
});

test('the newest that is damaged is told and passed over', async () => {
  for (const damage of ['torn', 'a bit']) {
    const disk = newDisk();
    const life = await Life.start(disk);
    await life.write(0, 70);
    life.crash();
    const [older, newest] = snapshotsOn(disk).slice(-2);
    const path = `${dir}/${newest}`;
    const { length } = disk.bytesOf(path);
    if (damage === 'torn') {
      const fd = disk.open(path, false);
      disk.truncate(fd, length - 20);
      disk.close(fd);
    } else
      disk.corrupt(path, length >> 1, new Uint8Array([1 + (disk.bytesOf(path)[length >> 1] ?? 0)]));
    const next = await Life.start(disk);
    assert.equal(next.begun[0]?.lastOffset, Number(older?.slice(0, 20)) - 1);
    assert.match(next.warnings[0] ?? '', /snapshot of the metadata that ends at offset \d+ cannot/);
    assert.deepEqual(entriesOf(next), entriesOf(life));
  }
});

test('a log whose beginning is in no snapshot is refused', async () => {
  const disk = newDisk();
  const life = await Life.start(disk);
  await life.write(0, 70);
  life.crash();
  for (const name of snapshotsOn(disk)) disk.unlink(`${dir}/${name}`);
  await assert.rejects(Life.start(disk), /begins at offset \d+, and no good snapshot has what was/);
});

test('without room there is none, and all goes on', async () => {
  const disk = newDisk();
  const life = await Life.start(disk);
  await life.write(0, 9);
  const create = disk.open.bind(disk);
  disk.open = (path, isNew) => {
    if (path.endsWith('.part')) disk.capacityBytes = 0;
    try {
      return create(path, isNew);
    } finally {
      disk.capacityBytes = Number.POSITIVE_INFINITY;
    }
  };
  await life.write(9, 20);
  assert.deepEqual(snapshotsOn(disk), []);
  assert.equal(life.failure, null);
  assert.match(life.warnings[0] ?? '', /No snapshot of the metadata could be written/);
});

test('whenever the power goes, nothing that was committed is missing', async () => {
  let begunWithSnapshot = 0;
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = new SeededRandom(seed);
    const disk = newDisk(seed);
    const known = new Map<string, number>();
    let number = 0;
    for (let lives = 0; lives < 4; lives += 1) {
      const life = await Life.start(disk, 300);
      if (life.begun[0]?.snapshot === true) begunWithSnapshot += 1;
      const check = (): void => {
        for (const [name, least] of known) {
          const value = Number(life.values.get(name)?.slice(6) ?? -1);
          assert(value >= least, `seed ${seed}: ${name} is ${value}, and was ${least}`);
          known.set(name, value);
        }
        for (const [name, value] of life.values) known.set(name, Number(value.slice(6)));
      };
      for (let turns = random.below(120); turns > 0; turns -= 1) {
        check();
        if (random.chance(0.6)) {
          life.put(number, `value ${number}`);
          number += 1;
        }
        await life.turn();
      }
      check();
      assert.equal(life.failure, null);
      life.crash();
    }
  }
  assert(begunWithSnapshot > 60, `${begunWithSnapshot} starts with a snapshot`);
});

test.run();
