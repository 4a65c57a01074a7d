/** A history of one consumer group: what its clients and the world do to the coordinator, and how it must end. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Rule } from '../../engine/groups/coordinator_runtime.ts';
import type { GroupRequest } from '../../engine/groups/group_api.ts';
import { defaultGroupOptions, type GroupOptions } from '../../engine/groups/group_options.ts';
import type { ClientProcess } from './client_process.ts';
import { GroupWorld } from './group_world.ts';
import type { PartitionReader } from './partition_reader.ts';

export interface ClientOptions {
  readonly name: string;
  readonly groupId: string;
  readonly topic: string;
  readonly instanceId: string | null;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly knowsMemberIdRequired: boolean;
  readonly knowsSkipAssignment: boolean;
  readonly assignor: string | null;
}

export interface SimulatedClient {
  readonly process: ClientProcess;
  readonly reader: PartitionReader;
  /** It is a member that has been told its assignment. */
  readonly isStable: boolean;
  /** The coordinator does not want it: it stays away. */
  readonly isRefused: boolean;
  /** Or member epoch. */
  readonly generationId: number;
  readonly memberId: string;
  start(): void;
  crash(): void;
  leave(): void;
}

/** What differs between the two protocols. */
export interface Protocol {
  readonly type: 'classic' | 'consumer';
  newClient(world: GroupWorld, options: ClientOptions): SimulatedClient;
  /** Whether groups and topics are deleted, and whether topics grow, in these histories. */
  readonly deletesGroups: boolean;
  readonly deletesTopics: boolean;
  readonly growsTopics: boolean;
  /** Somebody who does not belong: must be refused while there are members. */
  readonly strangerRequests: readonly GroupRequest[];
}

/** Steps of the coordinator in each history, at least. */
const eventsMin = 1_000;
export const groupId = 'g';
export const topic = 't';

function optionsOf(seed: number): GroupOptions {
  return {
    ...defaultGroupOptions,
    initialRebalanceDelayMs: [0, 500, 3_000][seed % 3] ?? 0,
    maxSize: seed % 10 === 0 ? 2 : 100,
    consumerMaxSize: seed % 10 === 0 ? 2 : 100,
    consumerSessionTimeoutMs: 8_000,
    consumerHeartbeatIntervalMs: 2_000,
    consumerAssignmentIntervalMs: [0, 1_000][seed % 2] ?? 0,
  };
}

class GroupHistory {
  readonly world: GroupWorld;
  readonly #protocol: Protocol;
  readonly #clients: SimulatedClient[] = [];

  constructor(seed: number, protocol: Protocol, without: readonly Rule[]) {
    const world = new GroupWorld(seed, optionsOf(seed), without);
    this.world = world;
    this.#protocol = protocol;
    const { random } = world;
    world.topics.set(topic, { topicId: 'T', partitionCount: 1 + random.below(12) });
    const staticShare = random.below(3) / 2;
    const rebalanceTimeoutMs = 6_000 + random.below(9_000);
    for (let index = 0; index < 1 + random.below(6); index += 1)
      this.#clients.push(
        protocol.newClient(world, {
          name: `c${index}`,
          groupId,
          topic,
          instanceId: random.chance(staticShare) ? `i${index}` : null,
          sessionTimeoutMs: 6_000 + random.below(4_000),
          rebalanceTimeoutMs,
          heartbeatIntervalMs: 1_000 + random.below(1_000),
          knowsMemberIdRequired: random.chance(0.7),
          knowsSkipAssignment: random.chance(0.5),
          assignor: [null, 'uniform', 'range'][random.below(3)] ?? null,
        }),
      );
  }

  /** Runs it to its end. Throws if a promise is broken. */
  run(): Readonly<Record<string, number>> {
    const { world } = this;
    const meanMs = 200 + world.faults.below(6_000);
    const act = (): void => {
      if (!world.isFaulty) return;
      this.#act();
      world.after(world.faults.below(2 * meanMs), act);
    };
    act();
    world.run(eventsMin - 100, Infinity);
    world.isFaulty = false;
    this.#settle();
    world.counts['events'] = world.events;
    return world.counts;
  }

  #act(): void {
    const { world } = this;
    const { faults } = world;
    const client = this.#clients[faults.below(this.#clients.length)];
    assert(client);
    const dice = faults.below(100);
    if (dice < 10) world.restart();
    else if (dice < 20) this.#askAsStranger();
    else if (dice < 25) this.#deleteGroup();
    else if (dice < 28) this.#growTopic();
    else if (dice < 31) this.#visit();
    else if (dice < 33) this.#deleteTopic();
    else if (!client.process.isAlive) this.#start(client);
    else if (dice < 45) {
      world.count('crashes');
      client.crash();
    } else if (dice < 55) {
      world.count('leaves');
      client.leave();
    } else if (dice < 75) client.process.stall(faults.below(20_000));
    else for (const other of this.#clients) this.#start(other);
  }

  #start(client: SimulatedClient): void {
    if (!client.process.isAlive && !client.isRefused) client.start();
  }

  /** Somebody who is no member sets an offset back, or speaks another protocol: allowed only while there are no members. */
  #askAsStranger(): void {
    const { world } = this;
    if (!world.isUp || !this.#hasMembers()) return;
    world.count('requests of strangers');
    const partition = {
      partitionIndex: world.faults.below(world.topics.get(topic)?.partitionCount ?? 1),
      committedOffset: 0n,
      committedLeaderEpoch: -1,
      committedMetadata: null,
    };
    const body = {
      groupId,
      apiVersion: 9,
      generationIdOrMemberEpoch: -1,
      memberId: '',
      groupInstanceId: null,
      retentionTimeMs: -1n,
      topics: [{ name: topic, topicId: '', partitions: [partition] }],
    };
    const requests: readonly GroupRequest[] = [
      { api: 'OffsetCommit', body },
      { api: 'DeleteGroups', body: { groupId } },
      ...(world.invariants.listedType === this.#protocol.type
        ? this.#protocol.strangerRequests
        : []),
    ];
    for (const request of requests)
      world.ask(request, (reply) => {
        if (reply === null) return;
        const error =
          reply.api === 'OffsetCommit'
            ? reply.body.topics[0]?.partitions[0]?.errorCode
            : 'errorCode' in reply.body && reply.body.errorCode;
        assert.notEqual(error, ErrorCode.NONE, `a stranger's ${request.api} was taken`);
      });
  }

  /** Somebody speaks the other protocol while there are no members, so that the group changes its type; and is gone. */
  #visit(): void {
    const { world } = this;
    const [request] = this.#protocol.strangerRequests;
    if (!world.isUp || this.#hasMembers() || request === undefined) return;
    world.count('visits of the other protocol');
    world.ask(request, () => undefined);
  }

  #hasMembers(): boolean {
    // What is due this very moment might otherwise end the last session after the look.
    this.world.tick();
    this.world.ask({ api: 'ListGroups', body: { statesFilter: [], typesFilter: [] } }, () => {
      // The invariants see the answer at once.
    });
    return !['', 'Empty', 'Dead'].includes(this.world.invariants.listedState);
  }

  #deleteGroup(): void {
    const { world } = this;
    if (!this.#protocol.deletesGroups) return;
    world.send({ api: 'DeleteGroups', body: { groupId } }, (reply) => {
      if (reply?.api === 'DeleteGroups' && reply.body.errorCode === ErrorCode.NONE)
        world.count('deleted groups');
    });
  }

  /** It is made again at once, as far as clients can see; what was committed is gone. */
  #deleteTopic(): void {
    const { world } = this;
    if (!this.#protocol.deletesTopics) return;
    world.count('deleted topics');
    world.topicsChanged([], [topic]);
  }

  #growTopic(): void {
    const { world } = this;
    const known = world.topics.get(topic);
    if (!this.#protocol.growsTopics || known === undefined || known.partitionCount > 20) return;
    world.count('new partitions');
    const partitionCount = known.partitionCount + 1 + world.faults.below(3);
    world.topics.set(topic, { ...known, partitionCount });
    world.topicsChanged([topic], []);
  }

  /** Nothing fails any more: sessions of the dead end, the living settle. */
  #settle(): void {
    const { world } = this;
    world.run(Infinity, world.nowMs + 30_000);
    if (this.#living().length === 0) {
      this.#clients[0]?.start();
      world.run(Infinity, world.nowMs + 30_000);
    }
    const limitMs = world.nowMs + 90_000;
    let problem = this.#problem();
    while (problem !== null && world.nowMs < limitMs) {
      world.run(Infinity, world.nowMs + 1_000);
      problem = this.#problem();
    }
    assert(problem === null, `the group does not settle: ${problem}`);
    const living = this.#living();
    for (const client of living) client.reader.commits = 0;
    const generationId = living[0]?.generationId;
    // Long enough for every session to be noticed that should end and for everybody to commit.
    world.run(Infinity, world.nowMs + 15_000);
    assert.equal(this.#problem(), null, 'the group does not stay settled');
    for (const { generationId: later, reader } of living) {
      assert.equal(later, generationId, 'a settled group rebalances');
      assert(reader.positions.size === 0 || reader.commits > 0, 'a member cannot commit');
    }
    assert(living.length > 0, 'nobody could join in the end');
    world.run(eventsMin, Infinity);
    world.count('settled');
  }

  #living(): SimulatedClient[] {
    return this.#clients.filter(({ process }) => process.isAlive);
  }

  /** Why the group is not settled, null if it is. */
  #problem(): string | null {
    const living = this.#living();
    if (living.length === 0) return null;
    const count = this.world.topics.get(topic)?.partitionCount ?? 0;
    const owned = new Set<number>();
    for (const { memberId, isStable, generationId, reader } of living) {
      if (!isStable) return `${memberId} is in no generation`;
      if (generationId !== living[0]?.generationId) return 'members of several generations';
      if (reader.positions.size < Math.floor(count / living.length))
        return `${memberId} has ${reader.positions.size} of ${count} partitions`;
      for (const partition of reader.positions.keys()) owned.add(partition);
    }
    return owned.size === count
      ? null
      : `${owned.size} of ${count} partitions have an owner that lives`;
  }
}

/** Runs one seed; what it throws names the seed. */
function runSeed(
  seed: number,
  protocol: Protocol,
  without: readonly Rule[] = [],
): Readonly<Record<string, number>> {
  try {
    return new GroupHistory(seed, protocol, without).run();
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
  }
}

/** Runs many seeds, and says how often each thing happened. */
export function runSeeds(
  first: number,
  count: number,
  protocol: Protocol,
): Readonly<Record<string, number>> {
  const totals: Record<string, number> = {};
  for (let seed = first; seed < first + count; seed += 1) {
    const counts = runSeed(seed, protocol);
    for (const [what, times] of Object.entries(counts)) totals[what] = (totals[what] ?? 0) + times;
  }
  return totals;
}

/** Whether one of the seeds breaks a promise when a rule is left out. */
export function isNoticed(rule: Rule, protocol: Protocol, seeds: number): boolean {
  for (let seed = 1; seed <= seeds; seed += 1) {
    try {
      runSeed(seed, protocol, [rule]);
    } catch {
      return true;
    }
  }
  return false;
}
