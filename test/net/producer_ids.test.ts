import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ProducerIds } from '../../net/producer_ids.ts';
import type { QuorumRequests } from '../../net/quorum_client.ts';
import type {
  AllocateProducerIdsResult,
  ControllerReply,
} from '../../replication/metadata/controller_api.ts';

const test = suite('producer ids');

/** A controller that answers when it is told to. */
class Blocks implements Pick<QuorumRequests, 'allocateProducerIds'> {
  asked = 0;
  #next = 0;
  #waiting: ((reply: ControllerReply<AllocateProducerIdsResult>) => void)[] = [];

  allocateProducerIds(): Promise<ControllerReply<AllocateProducerIdsResult>> {
    this.asked += 1;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async give(length: number): Promise<void> {
    this.#answer({ errorCode: ErrorCode.NONE, result: { firstProducerId: this.#next, length } });
    this.#next += length;
    await turn();
  }

  async fail(errorCode: Exclude<ErrorCode, 0>): Promise<void> {
    this.#answer({ errorCode, errorMessage: 'no', result: null });
    await turn();
  }

  #answer(reply: ControllerReply<AllocateProducerIdsResult>): void {
    const resolve = this.#waiting.shift();
    assert(resolve !== undefined, 'nobody asked for a block');
    resolve(reply);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function newIds(): { ids: ProducerIds; blocks: Blocks } {
  const blocks = new Blocks();
  return { ids: new ProducerIds(blocks as unknown as QuorumRequests), blocks };
}

test('ids are given out once each, over many blocks and callers at a time', async () => {
  const { ids, blocks } = newIds();
  const calls = Array.from({ length: 25 }, () => ids.next());
  for (let round = 0; round < 3; round += 1) {
    await turn();
    await blocks.give(10);
  }
  const results = await Promise.all(calls);
  assert(results.every(({ errorCode }) => errorCode === ErrorCode.NONE));
  const given = results.map(({ producerId }) => producerId);
  assert.equal(new Set(given).size, 25);
  assert.equal(blocks.asked, 3, 'one block at a time');
  for (let left = 25; left < 30; left += 1) given.push((await ids.next()).producerId);
  assert.deepEqual(
    given.sort((a, b) => a - b),
    Array.from({ length: 30 }, (_, id) => id),
    'and none is left out',
  );
  assert.equal(blocks.asked, 3);
});

test('an error goes to all who wait, and the next one asks again', async () => {
  const { ids, blocks } = newIds();
  const calls = [ids.next(), ids.next()];
  await blocks.fail(ErrorCode.REQUEST_TIMED_OUT);
  for (const call of calls)
    assert.deepEqual(await call, { errorCode: ErrorCode.REQUEST_TIMED_OUT, producerId: -1 });
  const again = ids.next();
  await blocks.give(1);
  assert.deepEqual(await again, { errorCode: ErrorCode.NONE, producerId: 0 });
});

test('a block of one', async () => {
  const { ids, blocks } = newIds();
  const calls = [ids.next(), ids.next(), ids.next()];
  for (let round = 0; round < 3; round += 1) await blocks.give(1);
  const results = await Promise.all(calls);
  assert.deepEqual(
    results.map(({ producerId }) => producerId),
    [0, 1, 2],
  );
});

test.run();
