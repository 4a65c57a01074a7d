/** Topics that can be used: Kafka answers that a topic is created before its broker leads the partitions. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BrokerError, type Client } from './client.ts';

const ledMs = 30_000;

/** Creates the topic and resolves when its partitions are led. */
export async function createLedTopic(client: Client, topic: string, partitions = 1): Promise<void> {
  await client.createTopic(topic, partitions);
  for (let partition = 0; partition < partitions; partition += 1)
    await untilLed(client, topic, partition);
}

/** Resolves when the broker leads the partition. */
export async function untilLed(client: Client, topic: string, partition: number): Promise<void> {
  for (const untilMs = performance.now() + ledMs; ; await sleep(20)) {
    try {
      await client.endOffset(topic, partition);
      return;
    } catch (error) {
      if (!(error instanceof BrokerError) || !isPassing(error.code)) throw error;
      if (performance.now() > untilMs) throw error;
    }
  }
}

function isPassing(code: number): boolean {
  return code === ErrorCode.NOT_LEADER_OR_FOLLOWER || code === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
}
