import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import { batchOf, produce, produced } from '../data_path/requests.ts';
import { groupWorld, rest } from '../groups/group_world.ts';

const test = suite("00 produce: the brokers' own topics");

test('clients write nothing to an internal topic, by name or by id, and read it as any other', async () => {
  const world = await groupWorld();
  for (const version of [3, 9, 12, 13])
    for (const acks of [1, -1]) {
      const part = { topic: '__consumer_offsets', partition: 1, records: batchOf(['v']) };
      const client = new WorldConnection(world);
      const sent = client.send('Produce', version, produce(world, version, acks, [part]));
      await rest(world);
      assert.equal(produced(sent.response()).errorCode, ErrorCode.INVALID_TOPIC_EXCEPTION);
    }
  assert.equal(world.leader('__consumer_offsets', 1).log.logEndOffset, 0);
});

test.run();
