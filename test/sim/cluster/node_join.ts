/** How a starting broker of a simulated cluster catches up with the metadata, as `ClusterNode.join` does. */
import type { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataDelta } from '../../../replication/metadata/records.ts';
import type { MetadataQuorum } from '../../../replication/raft/quorum.ts';
import type { SeededRandom } from '../seeded_random.ts';
import { isFailure, type Network } from './network.ts';
import type { SimProcess } from './sim_process.ts';

/** Asks the quorum's leader how far the metadata are. */
export interface DescribeMessage {
  readonly type: 'describe';
}

export interface Joining {
  readonly quorum: MetadataQuorum;
  readonly image: MetadataImage;
  readonly process: SimProcess;
  readonly network: Network;
  readonly random: SeededRandom;
}

/** Fulfilled when the node knows everything that was committed by now: only then it may look at what it is to lead. */
export function joinQuorum(joining: Joining): Promise<void> {
  const { quorum, image, process, network, random } = joining;
  return new Promise((resolve) => {
    const wait = (highWatermark: number): void => {
      if (image.offset >= highWatermark - 1) resolve();
      else process.after(5, () => wait(highWatermark));
    };
    const again = (): void => {
      process.after(10 + random.below(20), ask);
    };
    const ask = (): void => {
      const { leaderId, nodeId } = quorum;
      const take = (answer: unknown): void => {
        const description = answer as ReturnType<MetadataQuorum['describe']>;
        const isLeader = !isFailure(answer) && description.leaderId === leaderId;
        if (isLeader && description.highWatermark >= 0) wait(description.highWatermark);
        else again();
      };
      if (leaderId === nodeId) take(quorum.describe());
      else if (leaderId === -1) again();
      else {
        const message: DescribeMessage = { type: 'describe' };
        network.connect(process, leaderId).request(message, 500, take);
      }
    };
    ask();
  });
}

/** Records without what they leave as it was, for people. */
export function textOf({ records }: MetadataDelta): string {
  return JSON.stringify(records, (_key, value: unknown) => {
    const isNothing =
      value === null || value === -1 || (Array.isArray(value) && value.length === 0);
    return isNothing ? undefined : value;
  });
}
