import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { batchOf, batchOfBytes, produce, produced } from '../data_path/requests.ts';
import { assertNoMemoryHeld, stored, withClient } from '../data_path/world_client.ts';

const test = suite('00 produce: waiting and failing');

test('acks=1 answers after the write, acks=all after the flush', async () => {
  const { world, client } = await withClient();
  const one = client.send(
    'Produce',
    9,
    produce(world, 9, 1, [{ topic: 't', records: batchOf(['a']) }]),
  );
  const all = client.send(
    'Produce',
    9,
    produce(world, 9, -1, [{ topic: 't', records: batchOf(['b']) }]),
  );
  assert.deepEqual([one.isAnswered, all.isAnswered], [false, false]);
  world.endTurn();
  assert.deepEqual([one.isAnswered, all.isAnswered], [true, false]);
  world.endFlushes();
  assert.deepEqual([one.isAnswered, all.isAnswered], [true, true]);
});

test('acks=all of several partitions answers when the last of them is flushed', async () => {
  const { world, client } = await withClient({ logDirs: ['/data/a', '/data/b'] });
  const [first, second] = [world.leader('t', 0).log.dir, world.leader('t', 1).log.dir];
  assert.notEqual(
    first.slice(0, 7),
    second.slice(0, 7),
    'the partitions lie in different directories',
  );
  const sent = client.send(
    'Produce',
    9,
    produce(world, 9, -1, [
      { topic: 't', partition: 0, records: batchOf(['a']) },
      { topic: 't', partition: 1, records: batchOf(['b']) },
    ]),
  );
  world.endTurn();
  assert(!sent.isAnswered);
  world.settle();
  assert.deepEqual(
    sent.response().responses.map(({ partitionResponses }) => partitionResponses[0]?.errorCode),
    [0, 0],
  );
});

test('the time is up before the flush: REQUEST_TIMED_OUT, and the flush that comes later harms nothing', async () => {
  const { world, client } = await withClient();
  const sent = client.send(
    'Produce',
    9,
    produce(world, 9, -1, [{ topic: 't', records: batchOf(['a']) }], 250),
  );
  world.endTurn();
  world.advance(249);
  assert(!sent.isAnswered);
  world.advance(1);
  const one = produced(sent.response());
  assert.deepEqual([one.errorCode, one.baseOffset], [ErrorCode.REQUEST_TIMED_OUT, -1n]);
  world.settle();
  assert.deepEqual(stored(world), ['0 a']);
  assertNoMemoryHeld(world);
});

test('the time is up for one partition only: the others keep their success', async () => {
  const { world, client } = await withClient({ logDirs: ['/data/a', '/data/b'] });
  const batch = (partition: number) => ({ topic: 't', partition, records: batchOf(['a']) });
  const early = client.send('Produce', 9, produce(world, 9, -1, [batch(0)], 10_000));
  world.endTurn();
  const sent = client.send('Produce', 9, produce(world, 9, -1, [batch(0), batch(1)], 100));
  // The flush of the first directory is under way without the second batch; the other directory begins now.
  world.endTurn();
  world.endFlushes();
  assert(early.isAnswered);
  world.advance(100);
  const codes = sent
    .response()
    .responses.map(({ partitionResponses }) => partitionResponses[0]?.errorCode);
  assert.deepEqual(codes, [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]);
  world.settle();
});

test('a time limit of zero or less is up at once, one of 2^31-1 ms is a wait', async () => {
  const { world, client } = await withClient();
  const batch = { topic: 't', records: batchOf(['a']) };
  const none = client.send('Produce', 9, produce(world, 9, -1, [batch], 0));
  const negative = client.send('Produce', 9, produce(world, 9, -1, [batch], -5));
  world.clock.ms += 0.3;
  const endless = client.send('Produce', 9, produce(world, 9, -1, [batch], 0x7fffffff));
  world.advance(0.7);
  assert.equal(produced(none.response()).errorCode, ErrorCode.REQUEST_TIMED_OUT);
  assert.equal(produced(negative.response()).errorCode, ErrorCode.REQUEST_TIMED_OUT);
  assert(!endless.isAnswered);
  world.settle();
  assert.equal(produced(endless.response()).errorCode, ErrorCode.NONE);
});

test('acks other than -1, 0 and 1 are refused for every partition, and nothing is stored', async () => {
  const { world, client } = await withClient();
  for (const acks of [-2, 2, 32_767]) {
    const answer = client.call(
      'Produce',
      9,
      produce(world, 9, acks, [{ topic: 't', records: batchOf(['a']) }]),
    );
    assert.equal(produced(answer).errorCode, ErrorCode.INVALID_REQUIRED_ACKS);
  }
  assert.equal(world.leader('t').log.logEndOffset, 0);
});

test('a request without partitions is answered', async () => {
  const { world, client } = await withClient();
  for (const acks of [-1, 1])
    assert.deepEqual(client.call('Produce', 9, produce(world, 9, acks, [])).responses, []);
  assert(client.send('Produce', 9, produce(world, 9, 0, [])).isSilent);
});

test('the frame is kept until the batch is written, also when the connection dies before', async () => {
  const { world, client } = await withClient();
  client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records: batchOf(['kept']) }]));
  assert(world.memory.slabs.usedBytes > 0);
  client.die();
  assert(world.memory.slabs.usedBytes > 0, 'the write is still to come');
  world.endTurn();
  assertNoMemoryHeld(world);
  world.settle();
  assert.deepEqual(stored(world), ['0 kept']);
});

test('a connection that dies between write and flush leaves nothing behind', async () => {
  const { world, client } = await withClient();
  client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records: batchOf(['kept']) }]));
  world.endTurn();
  client.die();
  world.settle();
  assert.equal(world.services.produceTimeouts.size, 0);
  assert.deepEqual(stored(world), ['0 kept']);
});

for (const moment of ['before the write', 'before the flush'] as const)
  test(`the topic is deleted ${moment}: the request ends with an error and its memory is free`, async () => {
    const { world, client } = await withClient();
    const sent = client.send(
      'Produce',
      9,
      produce(world, 9, -1, [{ topic: 't', records: batchOf(['a']) }]),
    );
    if (moment === 'before the flush') world.endTurn();
    await world.deleteTopic('t');
    assert.equal(produced(sent.response()).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    assertNoMemoryHeld(world);
    world.settle();
    assert.deepEqual(world.failedDirs, []);
    const late = client.call('Produce', 9, {
      acks: -1,
      timeoutMs: 1,
      topicData: [{ name: 't', partitionData: [{ index: 0, records: batchOf(['b']) }] }],
    });
    assert.equal(produced(late).errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  });

test('a full disk: KAFKA_STORAGE_ERROR until there is room, the good partition of another disk goes on', async () => {
  const { world, client } = await withClient();
  const send = (value: string) => {
    const sent = client.send(
      'Produce',
      9,
      produce(world, 9, -1, [{ topic: 't', records: batchOf([value]) }]),
    );
    world.settle();
    return produced(sent.response());
  };
  assert.equal(send('a').errorCode, ErrorCode.NONE);
  world.disk.writeError = 'ENOSPC';
  assert.deepEqual(
    [send('b').errorCode, send('c').baseOffset],
    [ErrorCode.KAFKA_STORAGE_ERROR, -1n],
  );
  assert.deepEqual(stored(world), ['0 a'], 'reads go on');
  world.disk.writeError = null;
  assert.equal(send('d').baseOffset, 1n);
  assert.deepEqual(stored(world), ['0 a', '1 d']);
  assert.deepEqual(world.failedDirs, []);
  assertNoMemoryHeld(world);
});

test('v3 does not know KAFKA_STORAGE_ERROR and gets NOT_LEADER_OR_FOLLOWER in its place', async () => {
  const { world, client } = await withClient();
  world.disk.writeError = 'ENOSPC';
  const sent = client.send(
    'Produce',
    3,
    produce(world, 3, 1, [{ topic: 't', records: batchOf(['a']) }]),
  );
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER);
});

test('a disk that breaks in the middle of a request: every partition of it gets the error, the process goes on', async () => {
  const { world, client } = await withClient({
    topics: [['t', 2, { 'segment.bytes': '1048576' }]],
    logDirs: ['/data/a'],
  });
  const batch = (partition: number) => ({ topic: 't', partition, records: batchOfBytes(700_000) });
  const sent = client.send('Produce', 9, produce(world, 9, -1, [batch(0), batch(1)]));
  world.disk.writeError = 'EIO';
  const second = client.send('Produce', 9, produce(world, 9, -1, [batch(1), batch(0)]));
  world.settle();
  for (const one of [...sent.response().responses, ...second.response().responses])
    assert.equal(one.partitionResponses[0]?.errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.deepEqual(world.failedDirs, ['/data/a']);
  assertNoMemoryHeld(world);
});

test('a failed flush answers KAFKA_STORAGE_ERROR and never a success', async () => {
  const { world, client } = await withClient();
  const sent = client.send(
    'Produce',
    9,
    produce(world, 9, -1, [{ topic: 't', records: batchOf(['a']) }]),
  );
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.settle();
  assert.equal(produced(sent.response()).errorCode, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(world.services.produceTimeouts.size, 0);
});

test('transactional batches are refused as long as there are no transactions', async () => {
  const { world, client } = await withClient();
  const records = batchOf(['a'], {
    producerId: 1,
    producerEpoch: 0,
    baseSequence: 0,
    transactional: true,
  });
  const answer = client.call('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
  assert.equal(produced(answer).errorCode, ErrorCode.INVALID_TXN_STATE);
});

test('a batch beyond max.message.bytes, two batches, a flipped bit', async () => {
  const { world, client } = await withClient({
    topics: [['t', 1, { 'max.message.bytes': '100' }]],
  });
  const code = (records: Uint8Array): number => {
    const answer = client.call('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
    return produced(answer).errorCode;
  };
  assert.equal(code(batchOfBytes(101)), ErrorCode.MESSAGE_TOO_LARGE);
  assert.equal(code(Buffer.concat([batchOf(['a']), batchOf(['b'])])), ErrorCode.INVALID_RECORD);
  const damaged = batchOf(['a']);
  damaged[damaged.length - 2] = (damaged[damaged.length - 2] as number) ^ 1;
  assert.equal(code(damaged), ErrorCode.CORRUPT_MESSAGE);
  assert.equal(world.leader('t').log.logEndOffset, 0);
  assertNoMemoryHeld(world);
});

test('errors of idempotent producers: a gap, an old epoch', async () => {
  const { world, client } = await withClient();
  const send = (producerEpoch: number, baseSequence: number) => {
    const records = batchOf(['v'], { producerId: 9, producerEpoch, baseSequence });
    const sent = client.send('Produce', 9, produce(world, 9, -1, [{ topic: 't', records }]));
    world.settle();
    return produced(sent.response());
  };
  assert.equal(send(3, 0).errorCode, ErrorCode.NONE);
  const gap = send(3, 2);
  assert.equal(gap.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.match(gap.errorMessage ?? '', /sequence 2 where 1/);
  assert.equal(send(2, 0).errorCode, ErrorCode.INVALID_PRODUCER_EPOCH);
  assert.equal(send(3, 1).errorCode, ErrorCode.NONE);
});

test('a topic whose log could not be opened has no leader here', async () => {
  const { world, client } = await withClient();
  world.disk.capacityBytes = 0;
  await world.createTopic('late');
  const answer = () => {
    const sent = client.send(
      'Produce',
      9,
      produce(world, 9, 1, [{ topic: 'late', records: batchOf(['v']) }]),
    );
    world.settle();
    return produced(sent.response()).errorCode;
  };
  assert.equal(answer(), ErrorCode.NOT_LEADER_OR_FOLLOWER);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  world.partitions.tick();
  assert.equal(answer(), ErrorCode.NONE);
});

test.run();
