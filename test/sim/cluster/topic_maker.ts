/** Has the topics made that a simulated cluster is tried with, as soon as there is somebody to make it. */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { offsetsTopicName } from '../../../net/groups/offsets_topic.ts';
import type { AnyControllerReply, NewTopic } from '../../../replication/metadata/controller_api.ts';
import { SeededRandom } from '../seeded_random.ts';
import { Client, type ClientWorld } from './client.ts';
import { isFailure } from './network.ts';
import type { Swarm } from './swarm.ts';

export const topicName = 'sim';

/** Partitions have numbers in a world: those of the topic, and behind them the one that holds the groups. */
export function partitionOf(
  number: number,
  { partitions }: Pick<Swarm, 'partitions'>,
): { readonly topic: string; readonly partition: number } {
  return number < partitions
    ? { topic: topicName, partition: number }
    : { topic: offsetsTopicName, partition: 0 };
}

export function numberOf(
  topic: string,
  partition: number,
  { partitions }: Pick<Swarm, 'partitions'>,
): number {
  return topic === topicName ? partition : partitions;
}

export class TopicMaker {
  readonly #swarm: Swarm;
  readonly #client: Client;
  readonly #topicIds = new Map<string, string>();

  constructor(world: ClientWorld, swarm: Swarm) {
    this.#swarm = swarm;
    this.#client = new Client(world, 'admin', 4000, swarm.seed * 64 + 5);
  }

  /** Undefined until it is made. */
  topicId(name: string): string | undefined {
    return this.#topicIds.get(name);
  }

  /** A node has the topic in its metadata. */
  learn(name: string, topicId: string): void {
    this.#topicIds.set(name, topicId);
  }

  start(): void {
    this.#client.process.after(100, () => this.#make());
  }

  #make(): void {
    const { nodeIds } = this.#client.world;
    const node = nodeIds[this.#client.random.below(nodeIds.length)] as number;
    const request = {
      type: 'createTopics',
      validateOnly: false,
      topics: [
        this.#topic(topicName, this.#swarm.partitions),
        ...(this.#swarm.members > 0 ? [this.#topic(offsetsTopicName, 1)] : []),
      ],
    } as const;
    this.#client.ask(node, { type: 'controller', request }, (answer) => {
      this.#client.world.trace.add('admin', () => JSON.stringify(answer));
      if (!isMade(answer)) this.start();
    });
  }

  #topic(name: string, partitions: number): NewTopic {
    return {
      name,
      numPartitions: -1,
      replicationFactor: -1,
      assignments: this.#assignments(partitions),
      configs: [{ name: 'min.insync.replicas', value: String(this.#swarm.minInsyncReplicas) }],
    };
  }

  #assignments(partitions: number): { partitionIndex: number; brokerIds: number[] }[] {
    const { seed, nodes, replicationFactor } = this.#swarm;
    const random = new SeededRandom(seed * 64 + 6 + partitions);
    return Array.from({ length: partitions }, (_, partitionIndex) => {
      const ids = Array.from({ length: nodes }, (_unused, index) => index + 1);
      const brokerIds: number[] = [];
      while (brokerIds.length < replicationFactor)
        brokerIds.push(...ids.splice(random.below(ids.length), 1));
      return { partitionIndex, brokerIds };
    });
  }
}

function isMade(answer: unknown): boolean {
  if (isFailure(answer)) return false;
  const { result } = answer as AnyControllerReply;
  if (result === null || !('topics' in result)) return false;
  return result.topics.every((topic) => {
    const errorCode = 'errorCode' in topic ? topic.errorCode : ErrorCode.NONE;
    return errorCode === ErrorCode.NONE || errorCode === ErrorCode.TOPIC_ALREADY_EXISTS;
  });
}
