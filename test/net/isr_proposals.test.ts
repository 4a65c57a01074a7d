import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { IsrProposals } from '../../net/isr_proposals.ts';
import type {
  AlterPartitionRequest,
  AlterPartitionResult,
  ControllerReply,
} from '../../replication/metadata/controller_api.ts';
import type { IsrAnswer, IsrProposal } from '../../replication/partition/isr.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';

const test = suite('proposals of replicas in sync');

type Topics = AlterPartitionRequest['topics'];
type Reply = ControllerReply<AlterPartitionResult>;

/** A controller that answers when the test says so, and leaders that write down what they hear. */
class Bench {
  readonly asked: Topics[] = [];
  readonly heard: [IsrProposal, IsrAnswer | null][] = [];
  ticks = 0;
  readonly proposals: IsrProposals;
  #answer: ((reply: Reply) => void)[] = [];

  constructor() {
    this.proposals = new IsrProposals({
      quorum: {
        alterPartition: (topics) => {
          this.asked.push(topics);
          return new Promise((resolve) => this.#answer.push(resolve));
        },
      },
      clock: { wallMs: () => 0, monotonicMs: () => 0 },
    });
  }

  readonly leader: PartitionLeader = {
    proposalAnswered: (proposal: IsrProposal, answer: IsrAnswer | null) =>
      this.heard.push([proposal, answer]),
    tick: () => {
      this.ticks += 1;
    },
  } as unknown as PartitionLeader;

  propose(topicId: string, partition: number): IsrProposal {
    const newIsr = [{ brokerId: 1, brokerEpoch: 5 }];
    const proposal = { topicId, partition, leaderEpoch: 2, partitionEpoch: 3, newIsr };
    this.proposals.propose(this.leader, proposal);
    return proposal;
  }

  async reply(reply: Reply): Promise<void> {
    this.#answer.shift()?.(reply);
    await turn();
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function answered(topicId: string, ...partitions: number[]): Reply {
  const found = partitions.map((partitionIndex) => ({
    partitionIndex,
    errorCode: ErrorCode.NONE,
    leaderId: 1,
    leaderEpoch: 2,
    isr: [1],
    leaderRecoveryState: 0,
    partitionEpoch: 4,
  }));
  return { errorCode: ErrorCode.NONE, result: { topics: [{ topicId, partitions: found }] } };
}

test('what comes in a turn goes in one request, and each hears its own answer', async () => {
  const bench = new Bench();
  const proposals = [bench.propose('a', 0), bench.propose('a', 3), bench.propose('b', 1)];
  await turn();
  assert.equal(bench.asked.length, 1);
  assert.deepEqual(
    bench.asked[0]?.map(({ topicId, partitions }) => [
      topicId,
      partitions.map(({ partitionIndex }) => partitionIndex),
    ]),
    [
      ['a', [0, 3]],
      ['b', [1]],
    ],
  );
  await bench.reply(answered('a', 0, 3));
  assert.deepEqual(
    bench.heard.map(([proposal, answer]) => [proposal, answer?.partitionEpoch ?? null]),
    [
      [proposals[0], 4],
      [proposals[1], 4],
      [proposals[2], null],
    ],
  );
});

test('one request at a time: what comes meanwhile shares the next one', async () => {
  const bench = new Bench();
  bench.propose('a', 0);
  await turn();
  bench.propose('a', 1);
  bench.propose('a', 2);
  await turn();
  assert.equal(bench.asked.length, 1);
  await bench.reply(answered('a', 0));
  assert.equal(bench.asked.length, 2);
  assert.equal(bench.asked[1]?.[0]?.partitions.length, 2);
  await bench.reply(answered('a', 1, 2));
  bench.propose('a', 0);
  await turn();
  assert.equal(bench.asked.length, 3);
});

test('without an answer leaders are told so, and soon given the time to ask again', async () => {
  const bench = new Bench();
  bench.propose('a', 0);
  await turn();
  await bench.reply({
    errorCode: ErrorCode.NOT_CONTROLLER,
    errorMessage: 'another node is',
    result: null,
  });
  assert.equal(bench.heard[0]?.[1], null);
  while (bench.ticks === 0) await new Promise((resolve) => setTimeout(resolve, 5).ref());
  assert.equal(bench.ticks, 1);
});

test.run();
