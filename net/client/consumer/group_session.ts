/**
 * Drives a group's member: carries its requests to the coordinator and the answers back, keeps its time, and has its owner
 * give up and take partitions, one change after the other.
 *
 * Requests that wait at the coordinator go over a connection of their own, so that heartbeats, commits and the goodbye
 * never stand behind them.
 *
 * Thread: the client's.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ApiName, MessageInputs, MessageTypes } from '../../protocol/messages.gen.ts';
import type { Cluster } from '../cluster.ts';
import { brokerError, type MillraceError } from '../errors.ts';
import { abortable } from '../retry.ts';
import type {
  MemberAnswer,
  MemberEffect,
  MemberEvent,
  MemberIdentity,
  MemberRequest,
  Membership,
} from './membership.ts';
import type { TopicPartition } from './topic_partition.ts';

export interface GroupSessionOwner {
  /** Resolves when nobody reads these any more and what is to be committed is. Never rejects. */
  onRevoke(partitions: readonly TopicPartition[], isLost: boolean): Promise<void>;
  /** Never rejects. */
  onAssign(partitions: readonly TopicPartition[]): Promise<void>;
  /** The group cannot be joined. */
  onFailed(error: MillraceError): void;
}

export interface GroupSessionOptions {
  readonly group: string;
  readonly lane: string;
  /** How long a join may wait at the coordinator. */
  readonly joinTimeoutMs: number;
  readonly sessionTimeoutMs: number;
}

/** How long a topic that does not exist holds up a plan. */
const topicWaitMs = 500;
/** How often topics that did not exist are looked for. */
const missingTopicsMs = 5_000;
/** A goodbye is not worth more. */
const leaveTimeoutMs = 3_000;

const ofCoordinator: ReadonlySet<number> = new Set([
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.NOT_COORDINATOR,
]);

/** What an API's requests are sent with. LeaveGroup v3 names a list of members (KIP-345). */
const minVersions: Readonly<Record<MemberRequest['api'], number>> = {
  JoinGroup: 5,
  SyncGroup: 3,
  Heartbeat: 3,
  LeaveGroup: 3,
  ConsumerGroupHeartbeat: 0,
};

export class GroupSession {
  readonly #cluster: Cluster;
  readonly #member: Membership;
  readonly #owner: GroupSessionOwner;
  readonly #options: GroupSessionOptions;
  readonly #topics: Set<string>;
  readonly #stopListening: () => void;
  readonly #closing: AbortController = new AbortController();
  /** Changes of what is assigned, in their order. */
  #changes: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #missing: NodeJS.Timeout | null = null;
  #onLeft: () => void = () => undefined;
  readonly #left: Promise<void>;

  constructor(
    cluster: Cluster,
    member: Membership,
    topics: readonly string[],
    owner: GroupSessionOwner,
    options: GroupSessionOptions,
  ) {
    this.#cluster = cluster;
    this.#member = member;
    this.#topics = new Set(topics);
    this.#owner = owner;
    this.#options = options;
    this.#left = new Promise((resolve) => {
      this.#onLeft = resolve;
    });
    this.#stopListening = cluster.onMetadata(() => this.#tellCounts());
  }

  get identity(): MemberIdentity {
    return this.#member.identity;
  }

  join(): void {
    this.#missing ??= setInterval(() => this.#lookForMissing(), missingTopicsMs).unref();
    this.#step({ type: 'join' });
  }

  subscribe(topics: readonly string[]): void {
    for (const topic of topics) this.#topics.add(topic);
    this.#step({ type: 'subscribe', topics });
  }

  /** Out of the group until `join`. */
  setAbsent(): void {
    this.#step({ type: 'absent' });
  }

  /** Gives up everything in good order and says goodbye. Never rejects. */
  async leave(): Promise<void> {
    this.#step({ type: 'leave' });
    await this.#left;
    this.#end();
  }

  #end(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error('the member has left'));
    this.#stopListening();
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#missing !== null) clearInterval(this.#missing);
    this.#onLeft();
  }

  #step(event: MemberEvent): void {
    const effects = this.#member.step(event, performance.now());
    for (const effect of effects) this.#do(effect);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const { wakeAtMs } = this.#member;
    if (wakeAtMs === Number.POSITIVE_INFINITY || this.#closing.signal.aborted) return;
    const waitMs = Math.max(0, wakeAtMs - performance.now());
    this.#timer = setTimeout(() => this.#step({ type: 'time' }), waitMs);
  }

  #do(effect: MemberEffect): void {
    switch (effect.type) {
      case 'send':
        this.#send(effect.token, effect.request);
        return;
      case 'revoke':
        this.#change(async () => {
          await this.#owner.onRevoke(effect.partitions, effect.isLost);
          this.#step({ type: 'released' });
        });
        return;
      case 'assign':
        this.#change(() => this.#owner.onAssign(effect.partitions));
        return;
      case 'countPartitions':
        for (const topic of effect.topics) this.#topics.add(topic);
        this.#know(effect.topics).then(
          () => this.#tellCounts(),
          () => this.#tellCounts(),
        );
        return;
      case 'nameTopics':
        this.#nameTopics(effect.topicIds).catch(() => undefined);
        return;
      case 'fail': {
        const what = `join group ${JSON.stringify(this.#options.group)}`;
        const error = brokerError(effect.code, what, effect.message, remedyOf(effect.code));
        this.#change(async () => this.#owner.onFailed(error));
        this.#end();
        return;
      }
      case 'left':
        this.#onLeft();
    }
  }

  #change(change: () => Promise<void>): void {
    this.#changes = this.#changes.then(change);
  }

  #send(token: number, request: MemberRequest): void {
    const carried = this.#carry(request);
    carried.then(
      (answer) => this.#step({ type: 'answered', token, answer }),
      (error: MillraceError) => {
        if (error.isRetriable !== false) this.#step({ type: 'failed', token });
        // The coordinator does not know the request, or may not be asked.
        else if (!this.#closing.signal.aborted) this.#refused(error);
      },
    );
  }

  #refused(error: MillraceError): void {
    this.#change(async () => this.#owner.onFailed(error));
    this.#end();
  }

  async #carry({ api, body }: MemberRequest): Promise<MemberAnswer> {
    const answer = await this.#request(api, body as MessageInputs[`${typeof api}Request`]);
    return { api, body: answer } as MemberAnswer;
  }

  #request<N extends MemberRequest['api'] & ApiName>(
    api: N,
    body: MessageInputs[`${N}Request`],
  ): Promise<MessageTypes[`${N}Response`]> {
    const { group, lane, joinTimeoutMs, sessionTimeoutMs } = this.#options;
    const { requestTimeoutMs } = this.#cluster;
    const waits = api === 'JoinGroup' || api === 'SyncGroup';
    const isGoodbye =
      api === 'LeaveGroup' || ('memberEpoch' in body && (body.memberEpoch as number) < 0);
    const timeoutMs = waits
      ? joinTimeoutMs + requestTimeoutMs
      : isGoodbye
        ? leaveTimeoutMs
        : sessionTimeoutMs;
    return this.#cluster.request({ group }, api, body, {
      timeoutMs,
      // A heartbeat that gets no answer is to be sent again within the session.
      attemptTimeoutMs: waits ? timeoutMs : Math.min(requestTimeoutMs, timeoutMs / 3),
      ...(waits ? { lane } : {}),
      minVersion: minVersions[api],
      signal: this.#closing.signal,
      errorOf: (reply) => (ofCoordinator.has(reply.errorCode) ? reply.errorCode : ErrorCode.NONE),
    });
  }

  /** Asks for the topics' metadata; those that do not exist are left out. */
  async #know(topics: readonly string[]): Promise<void> {
    const { signal } = this.#closing;
    const unknown = topics.filter((topic) => this.#cluster.metadata.topic(topic) === undefined);
    const asked = unknown.map((topic) =>
      this.#cluster.topic(topic, { signal, timeoutMs: topicWaitMs }).catch(() => undefined),
    );
    // What is known may be old: a plan is to rest on what there is now.
    if (unknown.length < topics.length) asked.push(this.#refresh());
    await Promise.all(asked);
  }

  #refresh(): Promise<undefined> {
    return abortable(this.#cluster.refresh(), this.#closing.signal).then(
      () => undefined,
      () => undefined,
    );
  }

  #tellCounts(): void {
    const { metadata } = this.#cluster;
    const counts = new Map<string, number>();
    for (const topic of this.#topics) {
      const known = metadata.topic(topic);
      if (known !== undefined) counts.set(topic, known.partitions.length);
    }
    this.#step({ type: 'counts', counts });
  }

  #lookForMissing(): void {
    const { metadata } = this.#cluster;
    const missing = [...this.#topics].filter((topic) => metadata.topic(topic) === undefined);
    if (missing.length > 0) this.#know(missing).catch(() => undefined);
  }

  async #nameTopics(topicIds: readonly string[]): Promise<void> {
    const { metadata } = this.#cluster;
    const named = (): Map<string, string> => {
      const names = new Map<string, string>();
      for (const id of topicIds) {
        const name = metadata.topicName(id);
        if (name !== undefined) names.set(id, name);
      }
      return names;
    };
    let names = named();
    if (names.size < topicIds.length) {
      await this.#know([...this.#topics]);
      names = named();
    }
    this.#step({ type: 'names', names });
  }
}

function remedyOf(code: number): { remedy?: string } {
  switch (code) {
    case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
      return {
        remedy:
          'The members of a group share a protocol and a strategy: set `strategy` and `protocol` to what the others use.',
      };
    case ErrorCode.FENCED_INSTANCE_ID:
    case ErrorCode.UNRELEASED_INSTANCE_ID:
      return { remedy: 'Another consumer has the same `instanceId`: give each its own.' };
    case ErrorCode.INVALID_SESSION_TIMEOUT:
      return {
        remedy:
          "Choose a `sessionTimeoutMs` between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms.",
      };
    case ErrorCode.GROUP_MAX_SIZE_REACHED:
      return { remedy: "Run fewer consumers, or raise the broker's group.max.size." };
    case ErrorCode.GROUP_ID_NOT_FOUND:
      return { remedy: 'A group of the other protocol has this name: choose another one.' };
    default:
      return {};
  }
}
