/**
 * Strikes a simulated cluster with the faults of a plan. Whom a fault hits is drawn from the fault's own seed and from what
 * the cluster is like at that moment; what has happened is counted under the numbers of the fault list.
 */
import { SeededRandom } from '../seeded_random.ts';
import type { Fault, FaultKind, Moment } from './fault_plan.ts';
import type { Network } from './network.ts';
import type { SimNode } from './sim_node.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';

/** What faults see of a cluster and do to it. */
export interface FaultyWorld {
  readonly timeline: Timeline;
  readonly network: Network;
  readonly trace: Trace;
  readonly nodes: readonly SimNode[];
  readonly partitions: number;
  /** Machines of clients. */
  readonly clientIds: readonly number[];
  /** Milliseconds after which a node that is silent is fenced, or a follower that lags is left out. */
  readonly patienceMs: number;
  readonly minInsyncReplicas: number;
  readonly count: (what: string) => void;
  /** The node that leads a partition in the highest epoch, if one that is up does. */
  leaderOf(partition: number): SimNode | null;
  controller(): SimNode | null;
  /** Members of the committed ISR, as far as any node knows. */
  isrOf(partition: number): readonly number[];
  replicasOf(partition: number): readonly number[];
  /** Whether every ISR keeps two members without the node. */
  canSpare(node: SimNode): boolean;
}

interface Ambush {
  readonly fault: Fault;
  skips: number;
}

export class Faults {
  readonly #world: FaultyWorld;
  #ambushes: Ambush[] = [];
  /** Off in the liveness phase. */
  isOn: boolean = true;

  constructor(world: FaultyWorld, plan: readonly Fault[]) {
    this.#world = world;
    for (const fault of plan)
      world.timeline.after(fault.atMs, () => {
        if (this.isOn) this.#strike(fault);
      });
  }

  /** Something delicate has happened on a node; `other` is the node that it is about, if that is another one. */
  onMoment(moment: Moment, node: SimNode, other: SimNode | null): void {
    if (!this.isOn) return;
    const ambush = this.#ambushes.find(({ fault }) => fault.moment === moment);
    if (ambush === undefined) return;
    if (ambush.skips > 0) {
      ambush.skips -= 1;
      return;
    }
    this.#ambushes = this.#ambushes.filter((one) => one !== ambush);
    const random = new SeededRandom(ambush.fault.seed);
    // What the leader asks for arrives when the follower that it is about lives another life.
    const isJoin = ambush.fault.kind === 'ambush of a joining follower';
    if (isJoin) node.proposalDelayMs = this.#world.patienceMs + random.below(2_000);
    const victim = other !== null && (isJoin || random.chance(0.6)) ? other : node;
    const delayMs = random.below(3);
    const how = random.chance(0.5) ? 'kill' : 'power';
    const { run } = victim;
    this.#world.timeline.after(delayMs, () => {
      if (!this.isOn || victim.run !== run || run === null) return;
      this.#world.count(`1 killed when ${moment}`);
      if (moment === 'expanding' && victim === other)
        this.#world.count('17 follower restarts during ISR expansion');
      if (moment === 'snapshot') this.#world.count('20 crash during a snapshot');
      this.#takeDown(victim, how, random);
    });
  }

  #strike(fault: Fault): void {
    const { nodes, minInsyncReplicas } = this.#world;
    // Where one copy is enough, others that go now leave a damaged one alone, and who is to lead is for people to say.
    if (minInsyncReplicas === 1 && nodes.some(({ isExcused }) => isExcused)) return;
    const random = new SeededRandom(fault.seed);
    const any = nodes[random.below(nodes.length)] as SimNode;
    const partition = random.below(this.#world.partitions);
    this.#world.trace.add('fault', () => `${fault.kind} (seed ${fault.seed})`);
    const strikes: { readonly [kind in FaultKind]: () => void } = {
      kill: () => this.#takeDown(any, 'kill', random),
      'kill controller': () => this.#takeDown(this.#world.controller() ?? any, 'kill', random),
      'power cut': () => this.#takeDown(any, 'power', random),
      'power cut of all': () => this.#powerAll(random),
      'power cut beside paused nodes': () => this.#powerBesidePaused(any, random),
      pause: () => this.#pause(any, 20 + random.below(6_000)),
      'pause leader': () =>
        this.#pause(this.#world.leaderOf(partition) ?? any, 1_000 + random.below(12_000)),
      'one-way cut': () => this.#cutOneWay(any, random),
      isolation: () => this.#isolate(any, random),
      'clog of clients': () => this.#clogClients(random),
      'slow follower': () => this.#slowFollower(partition, random),
      'lagging replica': () => this.#lagging(partition, random),
      'lone replica': () => this.#loneReplica(partition, random),
      'two failovers': () => this.#twoFailovers(partition, random),
      'clock jump': () => {
        this.#world.count('21 wall clock jumps');
        any.wallSkewMs = random.chance(0.3) ? 0 : (random.next() * 2 - 1) * 3_600_000;
      },
      'vote file lost': () => this.#loseVoteFile(any, random),
      'bit rot': () => this.#rot(any, random),
      ambush: () => this.#lieInWait(fault),
      'ambush of a joining follower': () => this.#lieInWait(fault),
    };
    strikes[fault.kind]();
  }

  #lieInWait(fault: Fault): void {
    this.#ambushes.push({ fault, skips: fault.skips });
  }

  /** How long what was killed stays down: mostly short, now and then longer than anybody waits. */
  #downMs(random: SeededRandom): number {
    return random.chance(0.6) ? 10 + random.below(500) : random.below(2 * this.#world.patienceMs);
  }

  #takeDown(node: SimNode, how: 'kill' | 'power', random: SeededRandom): void {
    if (!this.#mayDie(node)) return;
    this.#countDeath(node, how);
    if (how === 'kill') node.kill();
    else node.losePower();
    this.#later(this.#downMs(random), () => node.start());
  }

  /** One that has lost part of a log is left alone until it has it again. */
  #mayDie(node: SimNode): boolean {
    return node.isUp && !node.isExcused;
  }

  #countDeath(node: SimNode, how: 'kill' | 'power'): void {
    const world = this.#world;
    world.count(how === 'kill' ? '1 kill' : '2 power cut of one');
    if (world.leaderOf(world.partitions) === node) world.count('27 group coordinator dies');
    for (let partition = 0; partition < world.partitions; partition += 1) {
      if (world.leaderOf(partition) !== node) continue;
      world.count('leaders killed');
      const isr = world.isrOf(partition);
      if (isr.length === 1 && world.replicasOf(partition).length > 1)
        world.count('15 lone in-sync replica dies');
      const shown = node.highWatermark(partition);
      const isBehind = world.nodes.some(
        (other) =>
          other !== node &&
          other.isUp &&
          isr.includes(other.id) &&
          other.highWatermark(partition) < shown,
      );
      if (isBehind) world.count('11 leader dies before followers know the high watermark');
    }
  }

  #powerAll(random: SeededRandom): void {
    const { nodes, count } = this.#world;
    count('2 power cut of all');
    for (const node of nodes) {
      if (!this.#mayDie(node)) continue;
      node.losePower();
      this.#later(random.below(1_500), () => node.start());
    }
  }

  #powerBesidePaused(victim: SimNode, random: SeededRandom): void {
    const { nodes, count } = this.#world;
    if (!this.#mayDie(victim) || nodes.length === 1) return;
    count('3 power cut of one while the others are paused');
    const pausedMs = 100 + random.below(4_000);
    for (const node of nodes) if (node !== victim) this.#pause(node, pausedMs);
    this.#later(random.below(30), () => this.#takeDown(victim, 'power', random));
  }

  #pause(node: SimNode, pausedMs: number): void {
    const { run } = node;
    if (run === null || !node.isUp) return;
    const { partitions, count } = this.#world;
    node.pause();
    this.#later(pausedMs, () => {
      if (node.run !== run) return;
      for (let partition = 0; partition < partitions; partition += 1) {
        const epoch = node.leadsInEpoch(partition);
        const now = this.#world.leaderOf(partition);
        if (epoch >= 0 && now !== null && now !== node && now.leadsInEpoch(partition) > epoch)
          count('13 zombie leaders');
      }
      node.goOn();
    });
  }

  #cutOneWay(from: SimNode, random: SeededRandom): void {
    const { nodes, network, count } = this.#world;
    const to = nodes[random.below(nodes.length)] as SimNode;
    if (to === from) return;
    count('14 one-way cuts');
    network.cut(from.id, to.id);
    this.#later(50 + random.below(3 * this.#world.patienceMs), () => network.heal(from.id, to.id));
  }

  #isolate(node: SimNode, random: SeededRandom): void {
    const { nodes, network, count } = this.#world;
    count('14 isolated nodes');
    const ways = random.below(3);
    const pairs: [number, number][] = [];
    for (const { id } of nodes) {
      if (id === node.id) continue;
      if (ways !== 0) pairs.push([node.id, id]);
      if (ways !== 1) pairs.push([id, node.id]);
    }
    for (const [from, to] of pairs) network.cut(from, to);
    this.#later(50 + random.below(3 * this.#world.patienceMs), () => {
      for (const [from, to] of pairs) network.heal(from, to);
    });
  }

  #clogClients(random: SeededRandom): void {
    const { nodes, network, clientIds, count } = this.#world;
    const client = clientIds[random.below(clientIds.length)] as number;
    count('22 clogs of clients');
    const isCut = random.chance(0.5);
    for (const { id } of nodes) {
      if (random.chance(0.3)) continue;
      if (isCut) network.cut(client, id);
      else network.clog(client, id, 4_000);
    }
    this.#later(200 + random.below(5_000), () => {
      for (const { id } of nodes) network.heal(client, id);
    });
  }

  #slowFollower(partition: number, random: SeededRandom): void {
    const { nodes, network, count } = this.#world;
    const leader = this.#world.leaderOf(partition);
    const isr = this.#world.isrOf(partition);
    const followers = nodes.filter((node) => node !== leader && isr.includes(node.id));
    const follower = followers[random.below(followers.length || 1)];
    if (leader === null || follower === undefined) return;
    network.clog(leader.id, follower.id, 2_000 + random.below(8_000));
    const lastsMs = 3 * this.#world.patienceMs;
    this.#later(lastsMs, () => {
      if (!this.#world.isrOf(partition).includes(follower.id))
        count('16 slow follower leaves the ISR');
      network.heal(leader.id, follower.id);
    });
  }

  /** A replica is down for long enough to fall out of the ISR, and comes back. */
  #lagging(partition: number, random: SeededRandom): void {
    const replicas = this.#world.replicasOf(partition);
    const id = replicas[random.below(replicas.length || 1)];
    const node = this.#world.nodes.find((one) => one.id === id);
    if (node === undefined || !this.#mayDie(node)) return;
    this.#countDeath(node, 'kill');
    node.kill();
    this.#later(2 * this.#world.patienceMs + random.below(1_000), () => node.start());
  }

  /** The ISR shrinks to the leader, and that one loses power. */
  #loneReplica(partition: number, random: SeededRandom): void {
    const { nodes } = this.#world;
    const leader = this.#world.leaderOf(partition);
    if (leader === null) return;
    const others = nodes.filter(
      (node) => node !== leader && this.#world.replicasOf(partition).includes(node.id),
    );
    const isKilled = random.chance(0.5);
    const lastsMs = 3 * this.#world.patienceMs;
    for (const node of others) {
      if (isKilled && this.#mayDie(node)) {
        node.kill();
        this.#later(lastsMs + random.below(2_000), () => node.start());
      } else this.#world.network.clog(leader.id, node.id, 20_000);
    }
    this.#later(lastsMs - random.below(this.#world.patienceMs), () => {
      this.#takeDown(leader, random.chance(0.7) ? 'power' : 'kill', random);
    });
    this.#later(lastsMs, () => {
      for (const node of others) this.#world.network.heal(leader.id, node.id);
    });
  }

  #twoFailovers(partition: number, random: SeededRandom): void {
    const first = this.#world.leaderOf(partition);
    if (first === null) return;
    this.#takeDown(first, random.chance(0.5) ? 'kill' : 'power', random);
    const again = (tries: number): void => {
      const second = this.#world.leaderOf(partition);
      if (second !== null && second !== first) {
        this.#world.count('12 two failovers');
        this.#takeDown(second, random.chance(0.5) ? 'kill' : 'power', random);
      } else if (tries > 0) this.#later(20, () => again(tries - 1));
    };
    this.#later(20 + random.below(100), () => again(100));
  }

  #loseVoteFile(node: SimNode, random: SeededRandom): void {
    if (node.isExcused) return;
    if (node.isUp) {
      this.#countDeath(node, 'kill');
      node.kill();
    }
    if (node.damageVoteFile(random)) this.#world.count('18 vote file lost or damaged');
    this.#later(this.#downMs(random), () => node.start());
  }

  #rot(node: SimNode, random: SeededRandom): void {
    if (!this.#mayDie(node) || !this.#world.canSpare(node)) return;
    this.#countDeath(node, 'kill');
    node.kill();
    if (node.rot(random)) this.#world.count('5 bit rot');
    this.#later(this.#downMs(random), () => node.start());
  }

  #later(delayMs: number, run: () => void): void {
    this.#world.timeline.after(delayMs, () => {
      if (this.isOn) run();
    });
  }
}
