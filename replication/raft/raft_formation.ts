/**
 * How nodes with empty logs find out whether they are to found a cluster or to join one.
 *
 * Only the configured voter with the lowest number stands for the first term, only when all of them have told their
 * directory ids and are empty, and it needs the votes of all under those ids. So a node that comes back empty can never
 * take part in a second founding: one of the others is not empty, or has voted. It joins as an observer instead.
 *
 * Part of the Raft core: no IO, no clock.
 */
import { uuidZero, type Voter } from '../metadata/records.ts';
import type { FormationReply } from './messages.ts';
import { majorityOf } from './raft_leader.ts';
import type { RaftContext } from './raft_types.ts';

const askFirstMs = 50;
const askMaxMs = 500;

export interface Founders {
  readonly voters: readonly Voter[];
  readonly votesNeeded: number;
  /** '' when none of them belongs to a cluster yet. */
  readonly clusterId: string;
}

export class RaftFormation {
  readonly #context: RaftContext;
  readonly #answers = new Map<number, FormationReply>();
  readonly #warned = new Set<string>();
  #askAtMs: number;
  #pauseMs = askFirstMs;

  constructor(context: RaftContext, nowMs: number) {
    this.#context = context;
    this.#askAtMs = nowMs;
  }

  get wakeAtMs(): number {
    return this.#askAtMs;
  }

  /** Forgets what was learned: a founding has failed, or a leader is gone. */
  restart(nowMs: number): void {
    this.#answers.clear();
    this.#pauseMs = askFirstMs;
    this.#askAtMs = nowMs + askFirstMs;
  }

  /** Asks everybody who may know a leader. */
  askWhenDue(token: number, nowMs: number): void {
    if (nowMs < this.#askAtMs) return;
    this.#pauseMs = Math.min(askMaxMs, this.#pauseMs * 2);
    this.#askAtMs = nowMs + this.#pauseMs;
    const { config, log } = this.#context;
    const ids = new Set(config.configuredVoters.map(({ voterId }) => voterId));
    for (const { voterId } of log.voters ?? []) ids.add(voterId);
    ids.delete(config.self.id);
    for (const id of ids) this.ask(id, token);
  }

  ask(to: number, token: number): void {
    const { config, clusterId } = this.#context;
    this.#context.emit({
      type: 'send',
      to,
      token,
      request: {
        type: 'formation',
        replicaId: config.self.id,
        replicaDirectoryId: config.self.directoryId,
        clusterId,
        voterIds: voterIdsOf(this.#context),
      },
      timeoutMs: config.timeouts.requestTimeoutMs,
    });
  }

  answered(reply: FormationReply): void {
    this.#answers.set(reply.replicaId, reply);
  }

  /** Who founds the cluster, once that is certain and it is this node's turn to begin. */
  founders(): Founders | null {
    const { config, log } = this.#context;
    if (log.endOffset > 0) return null;
    const ids = voterIdsOf(this.#context);
    if (!ids.includes(config.self.id)) return null;
    const others = ids.filter((id) => id !== config.self.id);
    const answers = others.flatMap((id) => this.#answers.get(id) ?? []);
    if (answers.some((answer) => !answer.isEmpty)) return null;
    if (config.without === 'all voters form') {
      if (answers.length + 1 < majorityOf(ids.length)) return null;
    } else if (answers.length < others.length || ids[0] !== config.self.id) return null;
    if (!answers.every((answer) => this.#agrees(answer, ids))) return null;
    const known = new Set([this.#context.clusterId, ...answers.map(({ clusterId }) => clusterId)]);
    known.delete('');
    if (known.size > 1) {
      this.#warn(
        `The configured voters are empty but belong to different clusters (${[...known].join(', ')}): none is founded. ` +
          'Empty the data directories of those that do not belong here.',
      );
      return null;
    }
    const [clusterId = ''] = known;
    const votesNeeded = config.without === 'all voters form' ? majorityOf(ids.length) : ids.length;
    return { voters: this.#votersOf(ids), votesNeeded, clusterId };
  }

  #votersOf(ids: readonly number[]): Voter[] {
    const { config } = this.#context;
    return ids.map((voterId) => {
      const isSelf = voterId === config.self.id;
      const configured = config.configuredVoters.find((voter) => voter.voterId === voterId);
      return {
        voterId,
        voterDirectoryId: isSelf
          ? config.self.directoryId
          : (this.#answers.get(voterId)?.replicaDirectoryId ?? uuidZero),
        endpoints: configured?.endpoints ?? [],
      };
    });
  }

  #agrees({ replicaId, voterIds }: FormationReply, ids: readonly number[]): boolean {
    if (voterIds.join() === ids.join()) return true;
    this.#warn(
      `Node ${replicaId} has controller.quorum.voters with the nodes ${voterIds.join(', ')}, this node with ` +
        `${ids.join(', ')}. No cluster is founded before they agree.`,
    );
    return false;
  }

  #warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#context.emit({ type: 'warn', message });
  }
}

function voterIdsOf({ config }: RaftContext): number[] {
  return config.configuredVoters.map(({ voterId }) => voterId);
}
