import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { CheckpointFiles } from '../../../engine/log/checkpoint_files.ts';
import { CheckpointTable, type PartitionCheckpoint } from '../../../engine/log/checkpoint_table.ts';
import { formatPartitionMetadata } from '../../../engine/log/log_parts.ts';
import { SimDisk } from '../../sim/disk.ts';

const test = suite('checkpoint files');
const [idA, idB] = ['AAAAAAAAAAAAAAAAAAAAAa', 'AAAAAAAAAAAAAAAAAAAAAb'] as const;

const marks = (topicId: string, logStartOffset = 3): PartitionCheckpoint => ({
  topic: 't',
  topicId,
  partition: 0,
  recoveryPoint: 9,
  highWatermark: 9,
  logStartOffset,
});

function newDisk(seed = 1): SimDisk {
  const disk = new SimDisk({ seed });
  disk.mkdir('/data');
  disk.mkdir('/data/t-0');
  return disk;
}

function own(disk: SimDisk, topicId: string): void {
  disk.writeFile('/data/t-0/partition.metadata', formatPartitionMetadata(topicId));
}

function settle(disk: SimDisk): void {
  while (disk.waitingFlushes > 0) disk.endFlushes();
}

function startIn(disk: SimDisk): number | undefined {
  return new CheckpointFiles(disk, '/data').read(['t-0'], []).get('t-0')?.logStartOffset;
}

test('marks of a topic that was deleted are not those of the one that has its name now', () => {
  const disk = newDisk();
  own(disk, idA);
  new CheckpointFiles(disk, '/data').write([{ ...marks(idA), cleanedOffset: 6 }], (error) =>
    assert.equal(error, null),
  );
  settle(disk);
  assert.equal(startIn(disk), 3);
  own(disk, idB);
  assert.deepEqual(new CheckpointFiles(disk, '/data').read(['t-0'], []).get('t-0'), {
    recoveryPoint: 0,
    highWatermark: 0,
    logStartOffset: 0,
    cleanedOffset: 0,
    topicId: idB,
  });
});

test('whenever the power goes while another topic’s marks are written, they are the right ones or none', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const disk = newDisk(seed);
    own(disk, idA);
    const files = new CheckpointFiles(disk, '/data');
    files.write([marks(idA, 3)], () => {});
    settle(disk);
    own(disk, idB);
    for (const path of ['/', '/data', '/data/t-0']) disk.flushDirectorySync(path);
    const fd = disk.open('/data/t-0/partition.metadata', false);
    disk.flushSync(fd);
    disk.close(fd);
    let isStored = false;
    files.writeLogStarts([marks(idB, 5)], () => {
      isStored = true;
    });
    for (let step = seed % 7; step > 0; step -= 1) disk.endFlushes();
    disk.crash();
    const start = startIn(disk);
    if (isStored) assert.equal(start, 5);
    else assert(start === 0 || start === 5, `seed ${seed}: ${start}`);
  }
});

test('lines without any ids are taken for what they are: a directory of Kafka’s', () => {
  const disk = newDisk();
  own(disk, idA);
  disk.writeFile('/data/log-start-offset-checkpoint', Buffer.from('0\n1\nt 0 7\n'));
  assert.equal(startIn(disk), 7);
});

test('a report that is late does not take a log start back, one of another topic replaces it', () => {
  const table = new CheckpointTable();
  table.report(marks(idA, 3));
  table.advance([{ topic: 't', topicId: idA, partition: 0, logStartOffset: 8 }]);
  table.report({ ...marks(idA, 3), recoveryPoint: 11 });
  assert.deepEqual(table.values(), [{ ...marks(idA, 8), recoveryPoint: 11 }]);
  table.report(marks(idB, 0));
  assert.deepEqual(table.values(), [marks(idB, 0)]);
  assert.equal(table.remove('t', 0, idA), false, 'the old one’s deletion is late');
  assert.equal(table.remove('t', 0, idB), true);
});

test('a log start that moves leaves alone how far the log is compacted', () => {
  const table = new CheckpointTable();
  table.report({ ...marks(idA, 3), cleanedOffset: 6 });
  table.advance([{ topic: 't', topicId: idA, partition: 0, logStartOffset: 8 }]);
  assert.deepEqual(table.values(), [{ ...marks(idA, 8), cleanedOffset: 6 }]);
  table.advance([{ topic: 't', topicId: idB, partition: 0, logStartOffset: 1 }]);
  assert.equal(table.values()[0]?.cleanedOffset, undefined);
});

test('what is to be written counts when it is', () => {
  const table = new CheckpointTable();
  table.report(marks(idA, 3));
  const start = { topic: 't', topicId: idA, partition: 0, logStartOffset: 8 };
  assert.deepEqual(table.valuesWith([start]), [marks(idA, 8)]);
  assert.deepEqual(table.values(), [marks(idA, 3)]);
  assert.equal(new CheckpointTable().valuesWith([start])[0]?.logStartOffset, 8);
});

test.run();
