/**
 * Power cuts on the real disk's port: a few logs under load are recorded, and after any cut of the recording a broker's
 * log code finds everything that had been acknowledged by then.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { suite } from 'uvu';
import { newBatchInfo } from '../../engine/batch/rules.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { newAppendResult } from '../../engine/log/append_result.ts';
import { FlushGroup } from '../../engine/log/flush_group.ts';
import { defaultLogConfig } from '../../engine/log/log_config.ts';
import { LogDirectory } from '../../engine/log/log_directory.ts';
import { PartitionLog } from '../../engine/log/partition_log.ts';
import { SegmentCache } from '../../engine/log/segment_cache.ts';
import { NodeDisk, nodeClock, nodeRandom, readBootId } from '../../engine/node_ports.ts';
import type { Disk } from '../../engine/ports.ts';
import { seedsAtLeast } from '../harness/budget.ts';
import { journalPosition, newJournalCounter } from './journal.ts';
import { JournalPlayer } from './journal_player.ts';
import { makeBatch, splitBatches, topicId } from './log_world.ts';
import { RecordingDisk } from './recording_disk.ts';
import { SeededRandom } from './seeded_random.ts';

const test = suite('power_cut');
const partitionCount = 3;
const rounds = seedsAtLeast(120);
const cuts = 120;

interface Ack {
  readonly partition: number;
  readonly offset: number;
  /** Journal position at which it was seen. */
  readonly position: number;
}

class Broker {
  readonly directory: LogDirectory;
  readonly group: FlushGroup;
  readonly logs: PartitionLog[] = [];
  onFlushed: (log: PartitionLog, offset: number) => void = () => {};

  constructor(disk: Disk, path: string) {
    const clock = nodeClock;
    const random = nodeRandom;
    const bootId = readBootId();
    this.directory = LogDirectory.open({ disk, random, bootId, path, nodeId: 1, clusterId: null });
    this.group = new FlushGroup({
      disk,
      clock,
      dir: path,
      defer: setImmediate,
      flushEachMax: 2,
      events: {
        onWritten: () => {},
        onFlushed: (log, offset) => this.onFlushed(log, offset),
        onDirectoryFailed: (error) => assert.fail(error.message),
      },
    });
    for (let partition = 0; partition < partitionCount; partition += 1) {
      const { recoveryPoint, logStartOffset } = this.directory.marksOf('orders', partition);
      const log = PartitionLog.open({
        disk,
        clock,
        random,
        cache: new SegmentCache(8),
        dir: `${path}/orders-${partition}`,
        topic: 'orders',
        partition,
        topicId,
        config: { ...defaultLogConfig, segmentBytes: 6000, indexIntervalBytes: 300 },
        recoveryPoint,
        logStartOffset,
        cleanShutdown: this.directory.cleanShutdown,
        afterPowerLoss: this.directory.afterPowerLoss,
        dropCache: this.directory.flushFailed,
        setAsideDamage: true,
      });
      this.group.adopt(log);
      this.logs.push(log);
    }
  }

  checkpoint(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.group.checkpoint((error) => {
        if (error !== null) reject(error);
        else this.directory.writeCheckpoints(this.#marks(), () => resolve());
      });
    });
  }

  #marks(): Array<Parameters<LogDirectory['writeCheckpoints']>[0][number]> {
    return this.logs.map(({ topic, partition, recoveryPoint, logStartOffset }) => ({
      topic,
      topicId,
      partition,
      recoveryPoint,
      logStartOffset,
      highWatermark: 0,
    }));
  }

  close(): void {
    for (const log of this.logs) {
      this.group.forget(log);
      log.closeFiles();
    }
    this.directory.close();
  }
}

/** Appends at random; the value of a record is its partition and offset. */
async function load(broker: Broker, counter: Int32Array, random: SeededRandom): Promise<Ack[]> {
  const acks: Ack[] = [];
  broker.onFlushed = ({ partition }, offset) =>
    acks.push({ partition, offset, position: journalPosition(counter) });
  for (let round = 0; round < rounds; round += 1) {
    const log = broker.logs[random.below(partitionCount)] as PartitionLog;
    append(broker, log, random.below(600));
    if (random.chance(0.4)) await new Promise((resolve) => setImmediate(resolve));
    // However slow the disk is, there is something acknowledged to lose.
    while (acks.length < round / 4) await new Promise((resolve) => setTimeout(resolve, 1));
    if (random.chance(0.1)) await new Promise((resolve) => setTimeout(resolve, 2));
    if (random.chance(0.03)) await broker.checkpoint();
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  return acks;
}

function append(broker: Broker, log: PartitionLog, padding: number): void {
  const value = new TextEncoder().encode(
    `${log.partition}:${log.logEndOffset}:`.padEnd(padding, 'x'),
  );
  const bytes = makeBatch({ records: [{ timestamp: 1n, value }] });
  const info = { ...newBatchInfo(), recordCount: 1, maxTimestamp: 1n };
  const code = log.appender.append(bytes, 0, bytes.length, info, 0, Date.now(), newAppendResult());
  assert.equal(code, ErrorCode.NONE);
  broker.group.markDirty(log, true);
}

function checkLog(log: PartitionLog, acked: number): void {
  assert.deepEqual(log.recovery.damage, []);
  assert.deepEqual(log.recovery.setAside, []);
  assert(log.logEndOffset >= acked, `acknowledged up to ${acked}, ends at ${log.logEndOffset}`);
  let next = 0;
  while (next < log.logEndOffset) {
    const slice = log.read(next, 100_000, log.logEndOffset, true);
    assert(typeof slice !== 'number');
    for (const { baseOffset, bytes } of splitBatches(log.copy(slice))) {
      assert.equal(baseOffset, next);
      assert(new TextDecoder().decode(bytes).includes(`${log.partition}:${next}:`));
      next += 1;
    }
  }
}

test('after a power cut at any point everything acknowledged by then is there', async () => {
  const home = fs.mkdtempSync(`${os.tmpdir()}/millrace-power-`);
  const random = new SeededRandom(11);
  try {
    const counter = newJournalCounter();
    const root = `${home}/data`;
    const disk = new RecordingDisk(new NodeDisk(), 'shard', `${home}/journal`, counter);
    const broker = new Broker(disk, root);
    const acks = await load(broker, counter, random);
    broker.close();
    assert(acks.length > 20);
    const player = new JournalPlayer([`${home}/journal`], root);
    const points = Array.from({ length: cuts }, () => random.below(player.end + 1));
    for (const [number, cut] of points.sort((a, b) => a - b).entries()) {
      player.advanceTo(cut);
      const target = `${home}/cut`;
      player.materialise(number, target);
      const after = new Broker(new NodeDisk(), target);
      for (const log of after.logs) {
        const own = acks.filter((ack) => ack.partition === log.partition && ack.position <= cut);
        checkLog(log, Math.max(0, ...own.map(({ offset }) => offset)));
      }
      after.close();
      fs.rmSync(target, { recursive: true });
    }
  } finally {
    fs.rmSync(home, { recursive: true });
  }
});

test.run();
