/**
 * A consumer's inside: brings its group's membership, its partitions and its commits together.
 *
 * Thread: the client's.
 *
 * Legal transitions:
 *   idle --begin--> present --no message taken for too long--> absent --begin--> present
 *   any --close--> closed
 */
import type { Cluster } from '../cluster.ts';
import { ClientCode, MillraceError } from '../errors.ts';
import { ClassicMember } from './classic_member.ts';
import { CommittedOffsets, isTakenOver } from './committed_offsets.ts';
import { ConsumerMember } from './consumer_member.ts';
import type { ConsumerSettings } from './consumer_options.ts';
import { Consumption } from './consumption.ts';
import { GroupSession } from './group_session.ts';
import type { MemberIdentity, Membership } from './membership.ts';
import { keyOf, type TopicPartition } from './topic_partition.ts';

/** Of a reader's presence: how often it is looked at within `maxPollIntervalMs`. */
const presenceLooks = 8;

const nobody: MemberIdentity = { memberId: '', instanceId: null, generationId: -1, isEpoch: false };

let lanes = 0;

export class ConsumerCore<K, V> {
  readonly settings: ConsumerSettings<K, V>;
  readonly consumption: Consumption<K, V>;
  /** Null without a group. */
  readonly committed: CommittedOffsets | null;
  readonly #cluster: Cluster;
  readonly #lane: string;
  #topics: readonly string[];
  #session: GroupSession | null = null;
  #state: 'idle' | 'present' | 'absent' | 'closed' = 'idle';
  #beginning: Promise<void> | null = null;
  #closing: Promise<void> | null = null;
  #commitTimer: NodeJS.Timeout | null = null;
  #presenceTimer: NodeJS.Timeout | null = null;
  #stopListening: (() => void) | null = null;
  /** The reader waits for a message. */
  isWaiting: boolean = false;
  #seenMessages = -1;
  #seenAtMs = 0;
  #assigned: () => void = () => undefined;
  /** Resolves at the first assignment. */
  readonly assigned: Promise<void>;
  /** Times that partitions were taken or given. */
  rebalances = 0;

  constructor(cluster: Cluster, settings: ConsumerSettings<K, V>) {
    this.#cluster = cluster;
    this.settings = settings;
    this.#topics = settings.topics;
    lanes += 1;
    this.#lane = `consumer-${lanes}`;
    const { group, policy, reader, limits } = settings;
    const owner = this;
    this.committed =
      group === null
        ? null
        : new CommittedOffsets(
            cluster,
            group,
            {
              get identity() {
                return owner.#identity;
              },
              get isBetween() {
                return owner.#session !== null && owner.#identity.generationId < 0;
              },
              standingOf: (one) => {
                const cursor = this.consumption.cursor(one);
                if (cursor === undefined) return 'none';
                return cursor.isStopped ? 'going' : 'kept';
              },
            },
            reader.isCommitted,
          );
    this.consumption = new Consumption(
      cluster,
      { lane: this.#lane, policy, reader, limits },
      this.committed === null ? null : (partitions, signal) => this.#fetch(partitions, signal),
    );
    this.assigned = new Promise((resolve) => {
      this.#assigned = resolve;
    });
    settings.signal?.addEventListener('abort', () => this.#onAbort(), { once: true });
    cluster.signal.addEventListener('abort', () => this.#onAbort(), { once: true });
    if (settings.partitions.length > 0) this.assign(settings.partitions);
  }

  get isPresent(): boolean {
    return this.#state === 'present';
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  get #identity(): MemberIdentity {
    return this.#session?.identity ?? nobody;
  }

  /** Begins to read, or joins the group again after an absence. */
  begin(): Promise<void> {
    if (this.#state === 'present') return Promise.resolve();
    if (this.#state === 'absent') {
      this.#notePresence();
      this.#state = 'present';
      this.#session?.join();
      return Promise.resolve();
    }
    this.#beginning ??= this.#begin().finally(() => {
      this.#beginning = null;
    });
    return this.#beginning;
  }

  /** Reads exactly these, each from its offset where that is given. Those that it has already go on. */
  assign(partitions: readonly (TopicPartition & { readonly offset?: number })[]): void {
    const wanted = new Set(partitions.map(keyOf));
    const { consumption } = this;
    consumption.remove(consumption.cursors.filter((one) => !wanted.has(keyOf(one))));
    consumption.add(partitions);
    for (const one of partitions)
      if (one.offset !== undefined) consumption.cursor(one)?.seek(one.offset);
    if (this.#state === 'present') consumption.activate();
  }

  async subscribe(topics: readonly string[]): Promise<void> {
    this.#topics = topics;
    if (this.#state === 'idle') return;
    await this.#knowTopics();
    if (this.#session !== null) this.#session.subscribe(topics);
    else this.#takeWholeTopics();
  }

  /** What has been processed and is not committed yet. Never rejects: what stays wrong is told to the reader. */
  async commitProcessed(partitions?: readonly TopicPartition[]): Promise<void> {
    const { committed } = this;
    if (committed === null) return;
    const offsets = this.consumption
      .processed(partitions)
      .filter((one) => one.offset > committed.lastOf(one));
    await committed.commit(offsets).catch((error: unknown) => this.#onCommitFailed(error));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const wasIdle = this.#state === 'idle';
    this.#state = 'closed';
    if (this.#commitTimer !== null) clearInterval(this.#commitTimer);
    if (this.#presenceTimer !== null) clearInterval(this.#presenceTimer);
    this.#stopListening?.();
    // Whoever closes is not going to come back for more.
    this.consumption.letGo();
    this.consumption.wake();
    const { autoCommitMs } = this.settings;
    if (this.#session !== null) await this.#session.leave();
    else if (!wasIdle && autoCommitMs !== null) await this.commitProcessed();
    this.consumption.close();
    for (const id of this.#cluster.metadata.brokers.keys())
      this.#cluster.openConnection(id, this.#lane)?.close();
  }

  #onAbort(): void {
    const { signal } = this.settings;
    if (signal?.aborted === true) this.consumption.fail(signal.reason);
    this.close().catch(() => undefined);
  }

  async #begin(): Promise<void> {
    const { group, partitions, autoCommitMs, maxPollIntervalMs } = this.settings;
    const isManaged = partitions.length === 0 && this.consumption.cursors.length === 0;
    if (isManaged && this.#topics.length === 0)
      throw new MillraceError(ClientCode.INVALID_ARGUMENT, 'the consumer has nothing to read', {
        remedy: 'Set `topics` or `partitions`, or call `subscribe` or `assign`.',
      });
    if (isManaged) await this.#knowTopics();
    if (this.isClosed) return;
    this.#state = 'present';
    this.#notePresence();
    if (autoCommitMs !== null)
      this.#commitTimer = setInterval(() => {
        this.commitProcessed().catch(() => undefined);
      }, autoCommitMs).unref();
    if (isManaged && group !== null) {
      this.#session = this.#newSession(group);
      this.#presenceTimer = setInterval(
        () => this.#lookAtPresence(),
        Math.max(10, maxPollIntervalMs / presenceLooks),
      ).unref();
      this.#session.join();
      return;
    }
    if (isManaged) {
      this.#takeWholeTopics();
      this.#stopListening = this.#cluster.onMetadata(() => this.#takeWholeTopics());
    } else {
      this.consumption.activate();
      this.#assigned();
    }
  }

  #newSession(group: string): GroupSession {
    const { settings } = this;
    const { instanceId, strategies, serverAssignor, sessionTimeoutMs } = settings;
    const shared = {
      groupId: group,
      instanceId,
      topics: this.#topics,
      rebalanceTimeoutMs: settings.maxPollIntervalMs,
      random: Math.random,
    };
    const member: Membership =
      settings.protocol === 'consumer'
        ? new ConsumerMember({
            ...shared,
            memberId: crypto.randomUUID(),
            serverAssignor,
            takeOverMs: 2 * sessionTimeoutMs,
          })
        : new ClassicMember({
            ...shared,
            strategies,
            sessionTimeoutMs,
            heartbeatIntervalMs: settings.heartbeatIntervalMs,
          });
    return new GroupSession(
      this.#cluster,
      member,
      this.#topics,
      {
        onAssign: (partitions) => this.#onAssign(partitions),
        onRevoke: (partitions, isLost) => this.#onRevoke(partitions, isLost),
        onFailed: (error) => this.consumption.fail(error),
      },
      {
        ...{ group, sessionTimeoutMs },
        lane: `${this.#lane}-join`,
        joinTimeoutMs: settings.maxPollIntervalMs,
      },
    );
  }

  async #onAssign(partitions: readonly TopicPartition[]): Promise<void> {
    if (partitions.length > 0) {
      this.rebalances += 1;
      this.consumption.add(partitions);
      await this.#tell('assigned', partitions);
      this.consumption.activate();
    }
    this.#assigned();
  }

  async #onRevoke(partitions: readonly TopicPartition[], isLost: boolean): Promise<void> {
    const { consumption } = this;
    this.rebalances += 1;
    consumption.stop(partitions);
    if (!isLost && !this.isClosed) await consumption.handFree(partitions);
    await this.#tell(isLost ? 'lost' : 'revoked', partitions);
    if (!isLost && this.settings.autoCommitMs !== null) await this.commitProcessed(partitions);
    consumption.remove(partitions);
    for (const one of partitions) this.committed?.forget(one);
  }

  async #tell(
    type: 'assigned' | 'revoked' | 'lost',
    partitions: readonly TopicPartition[],
  ): Promise<void> {
    try {
      await this.settings.onRebalance({ type, partitions });
    } catch (error) {
      this.consumption.fail(error);
    }
  }

  async #fetch(
    partitions: readonly TopicPartition[],
    signal: AbortSignal,
  ): ReturnType<CommittedOffsets['fetch']> {
    const committed = this.committed as CommittedOffsets;
    const found = await committed.fetch(partitions, this.#identity, signal);
    for (const one of found.values()) committed.note(one);
    return found;
  }

  #onCommitFailed(error: unknown): void {
    const isPassing = error instanceof MillraceError && error.isRetriable;
    if (!isPassing && !isTakenOver(error) && !this.isClosed) this.consumption.fail(error);
  }

  /** Throws UNKNOWN_TOPIC_OR_PARTITION. */
  async #knowTopics(): Promise<void> {
    const { signal } = this.settings;
    await Promise.all(this.#topics.map((topic) => this.#cluster.topic(topic, { signal })));
  }

  /** Without a group: all partitions. Those that come later are new and begin at their beginning. */
  #takeWholeTopics(): void {
    const { consumption } = this;
    const isFirst = consumption.cursors.length === 0;
    const partitions = this.#topics.flatMap(
      (topic) => this.#cluster.metadata.topic(topic)?.partitions ?? [],
    );
    const wanted = new Set(partitions.map(keyOf));
    const isSubscribed = ({ topic }: TopicPartition): boolean => this.#topics.includes(topic);
    const goes = consumption.cursors.filter((one) => !wanted.has(keyOf(one)) && !isSubscribed(one));
    if (goes.length > 0) consumption.remove(goes);
    const known = new Set(consumption.cursors.map(({ topic }) => topic));
    for (const one of partitions)
      consumption.add([one], !isFirst && known.has(one.topic) ? 'earliest' : undefined);
    consumption.activate();
    this.#assigned();
  }

  #notePresence(): void {
    this.#seenMessages = this.consumption.messages;
    this.#seenAtMs = performance.now();
  }

  #lookAtPresence(): void {
    const isSeen = this.isWaiting || this.consumption.messages !== this.#seenMessages;
    if (isSeen) this.#notePresence();
    const awayMs = performance.now() - this.#seenAtMs;
    if (this.#state !== 'present' || awayMs < this.settings.maxPollIntervalMs) return;
    this.#state = 'absent';
    this.#session?.setAbsent();
  }
}
