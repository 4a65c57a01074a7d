/**
 * A broker as far as replication goes: a shard's partitions over a simulated disk, with the metadata that have reached it.
 * Turns end, flushes end and fetches travel when the test says so.
 */
import assert from 'node:assert/strict';
import { newBatchInfo } from '../../../engine/batch/rules.ts';
import { validateProduceBatch } from '../../../engine/batch/validate.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { newAppendResult } from '../../../engine/log/append_result.ts';
import { Placements } from '../../../net/fabric/placements.ts';
import { LogDirectories } from '../../../net/log_directories.ts';
import { LevelLogger } from '../../../net/logger.ts';
import { lookAt } from '../../../net/partition_look.ts';
import { LogStarts } from '../../../net/retention/log_starts.ts';
import { ShardPartitions } from '../../../net/shard_partitions.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataBatch } from '../../../replication/metadata/records.ts';
import type { PartitionFollower } from '../../../replication/partition/follower.ts';
import type {
  FetchedPartition,
  FollowerFetchState,
} from '../../../replication/partition/follower_fetch.ts';
import type { IsrProposal } from '../../../replication/partition/isr.ts';
import type { AppendWaiter, PartitionLeader } from '../../../replication/partition/leader.ts';
import type { PartitionReplica } from '../../../replication/partition/replica.ts';
import { clusterId } from '../../replication/metadata/fixtures.ts';
import { SimDisk } from '../../sim/disk.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import { configOf } from '../data_path/shard_world.ts';
import type { WorldClock } from '../data_path/world_clock.ts';
import { type ModelController, topic } from './model_controller.ts';

/** A leader's wish, on its way to the controller. */
export interface Wish {
  readonly leader: PartitionLeader;
  readonly proposal: IsrProposal;
}

export class ReplicaNode {
  readonly id: number;
  readonly disk: SimDisk;
  readonly lines: string[] = [];
  readonly wishes: Wish[] = [];
  /** Metadata that have not arrived. */
  deltas: MetadataBatch[] = [];
  brokerEpoch = -1;
  /** The last start has found records missing. */
  isDamaged: boolean = false;
  /** Counts the starts: what was under way before one is nobody's. */
  life = 0;
  partitions: ShardPartitions | null = null;
  image!: MetadataImage;
  readonly #controller: ModelController;
  readonly #settings: readonly string[];
  readonly #clock: WorldClock;
  #directories!: LogDirectories;
  #deferred: (() => void)[] = [];
  #boot = 1;

  constructor(
    id: number,
    controller: ModelController,
    clock: WorldClock,
    seed: number,
    settings: readonly string[] = [],
  ) {
    this.id = id;
    this.#settings = settings;
    this.#controller = controller;
    this.#clock = clock;
    this.disk = new SimDisk({ seed: seed * 16 + id });
    this.disk.nowMs = () => clock.wallMs();
    controller.onBatch((batch) => this.deltas.push(batch));
  }

  get isUp(): boolean {
    return this.partitions !== null;
  }

  get leader(): PartitionLeader | undefined {
    return this.partitions?.table.byName(topic, 0);
  }

  get follower(): PartitionFollower | undefined {
    return this.partitions?.followers.byName(topic, 0);
  }

  get replica(): PartitionReplica | undefined {
    return this.leader ?? this.follower;
  }

  /** Opens what is on the disk, with metadata that do not know of this start, and then registers. */
  start(): void {
    const { disk } = this;
    this.isDamaged = false;
    const logger = new LevelLogger(
      { format: 'text', level: 'info' },
      (level, message, fields) => this.lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
      () => this.#clock.ms,
    );
    const alone = configOf([
      `node.id=${this.id}`,
      'log.dirs=/data/a',
      'replica.lag.time.max.ms=2000',
      ...this.#settings,
    ]);
    const voters = [{ nodeId: 1, host: 'localhost', port: 9093 }];
    const config = { ...alone, quorum: { ...alone.quorum, voters } };
    const random = new SeededRandom(this.id);
    const bootId = `boot-${this.#boot}`;
    this.#directories = LogDirectories.open({ config, disk, random, bootId, logger });
    this.image = new MetadataImage(clusterId);
    const starts = new LogStarts(({ number, path, starts: asked }) =>
      this.#directories.storeLogStarts(path, asked, (error) =>
        starts.stored(number, error !== null),
      ),
    );
    this.partitions = new ShardPartitions({
      live: { current: config },
      image: this.image,
      placements: new Placements(0, 1),
      disk,
      clock: this.#clock,
      random,
      logDirs: this.#directories.data(),
      logger,
      defer: (run) => this.#deferred.push(run),
      onHighWatermark: () => {},
      onWritten: () => {},
      propose: (leader, proposal) => this.wishes.push({ leader, proposal }),
      release: (_log, run) => run(),
      starts,
      onDeleted: () => {},
      onDamaged: () => {
        this.isDamaged = true;
      },
      onDirFailed: (_path, reason) => assert.fail(reason),
      onAllFailed: (reason) => assert.fail(reason),
    });
    this.partitions.apply(this.image.apply(this.#controller.image.snapshot()));
    this.deltas = [];
    this.brokerEpoch = this.#controller.register(this.id);
  }

  /** The process dies, and with `power` what was not flushed goes. */
  stop(power: boolean): void {
    if (power) this.disk.crash();
    else this.disk.kill();
    if (power) this.#boot += 1;
    this.partitions = null;
    this.life += 1;
    this.wishes.length = 0;
    this.#deferred = [];
  }

  applyNext(): void {
    const batch = this.deltas.shift();
    if (batch !== undefined) this.partitions?.apply(this.image.apply(batch));
  }

  get isBusy(): boolean {
    return this.#deferred.length > 0 || this.disk.waitingFlushes > 0;
  }

  endTurn(): void {
    const runs = this.#deferred;
    this.#deferred = [];
    for (const run of runs) run();
  }

  checkpoint(): void {
    this.partitions?.checkpoint((dir) => this.#directories.report([dir]));
  }

  /** As a producer's request does. */
  append(batch: Uint8Array, allReplicas: boolean, waiter: AppendWaiter): ErrorCode {
    const leader = this.leader;
    if (leader === undefined) return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    const info = newBatchInfo();
    leader.batchRules.nowMs = this.#clock.wallMs();
    const invalid = validateProduceBatch(batch, 0, batch.length, leader.batchRules, info);
    assert.equal(invalid, ErrorCode.NONE, info.errorMessage ?? '');
    const nowMs = this.#clock.wallMs();
    const result = newAppendResult();
    return leader.append(batch, 0, batch.length, info, allReplicas, nowMs, waiter, result);
  }

  /** A follower's fetch arrives. */
  serve(
    brokerId: number,
    brokerEpoch: number,
    asked: FollowerFetchState,
    maxBytes: number,
  ): FetchedPartition {
    const leaderEpoch = asked.currentLeaderEpoch;
    const none = { highWatermark: -1, logStartOffset: -1, diverging: null, records: null };
    const leader = this.leader;
    if (leader === undefined)
      return { leaderEpoch, errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER, ...none };
    const nowMs = this.#clock.monotonicMs();
    const replica = { brokerId, brokerEpoch, nowMs };
    const look = lookAt(leader, { ...asked, maxBytes }, maxBytes, true, false, true, replica);
    const { errorCode, highWatermark, logStartOffset, diverging, slice } = look;
    const records = slice === null ? null : readSlice(this.disk, slice);
    slice?.segment.unpin();
    return { leaderEpoch, errorCode, highWatermark, logStartOffset, diverging, records };
  }
}

function readSlice(
  disk: SimDisk,
  { fd, position, length }: { fd: number; position: number; length: number },
): Uint8Array {
  const bytes = new Uint8Array(length);
  assert.equal(disk.read(fd, bytes, 0, length, position), length);
  return bytes;
}
