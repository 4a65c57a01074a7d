/**
 * The way to the controller, wherever in the quorum it is: a request goes to this node's own when that leads, else to
 * the leader's listener, and again to the next one when leadership moves, until its time is over.
 *
 * As in Kafka, a request whose connection broke is sent again: it may have been done the first time, and then a topic "already
 * exists". Requests of brokers for themselves say which state they rest on, so that a second time does no harm.
 *
 * Thread: main.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  QuorumReply,
  QuorumReplyOf,
  QuorumRequest,
  QuorumRequestOf,
  QuorumRequestType,
} from '../quorum_api.ts';
import { appliedEverywhere, type LeaderWatcher, type QuorumHost } from '../quorum_host.ts';
import type { PeerLinks } from './peer_links.ts';
import { failure } from './quorum_rpc.ts';
import { rpcOf } from './quorum_rpcs.ts';

export interface ControllerChannelOptions {
  readonly nodeId: number;
  readonly host: QuorumHost;
  readonly links: PeerLinks;
  readonly clusterId: () => string;
}

const limits = {
  /** Before the leader, or whoever was taken for it, is asked again; a new leader is asked at once. */
  backoffMs: 50,
  /** For what nobody waits for. */
  unawaitedMs: 30_000,
  /** For the question up to where this node has to catch up. */
  describeMs: 5_000,
} as const;

export class ControllerChannel implements LeaderWatcher {
  readonly #options: ControllerChannelOptions;
  /** Those who would rather not go on as they are when the leader changes. */
  #impatient = new Set<() => void>();

  constructor(options: ControllerChannelOptions) {
    this.#options = options;
  }

  /** Resolves within `timeoutMs`, never rejects. ≤ 0: nobody waits, but the request is made. */
  async request<K extends QuorumRequestType>(
    request: QuorumRequestOf<K>,
    timeoutMs: number,
  ): Promise<QuorumReplyOf<K>> {
    const asked = request as unknown as QuorumRequest;
    const deadlineMs = performance.now() + (timeoutMs > 0 ? timeoutMs : limits.unawaitedMs);
    // The answer is the one that belongs to the request's type.
    const reply = (await this.#untilAnswered(asked, deadlineMs)) as QuorumReplyOf<K>;
    return reply;
  }

  onLeaderChanged(): void {
    const impatient = this.#impatient;
    this.#impatient = new Set();
    for (const wake of impatient) wake();
  }

  async #untilAnswered(request: QuorumRequest, deadlineMs: number): Promise<QuorumReply> {
    const { nodeId, host } = this.#options;
    for (;;) {
      const remainingMs = deadlineMs - performance.now();
      if (remainingMs <= 0) return timedOut;
      const { leaderId } = host;
      if (leaderId === nodeId) {
        const reply = await this.#unlessLate(host.request(request as never), remainingMs);
        if (reply.errorCode !== ErrorCode.NOT_CONTROLLER) return reply;
      } else if (leaderId !== -1) {
        const reply = await this.#ask(leaderId, request, remainingMs);
        if (reply !== null && reply.errorCode !== ErrorCode.NOT_CONTROLLER)
          return this.#caughtUp(leaderId, request, reply, deadlineMs);
      }
      const waitMs = Math.max(0, Math.min(limits.backoffMs, deadlineMs - performance.now()));
      if (host.leaderId === leaderId) await this.#leaderChange(waitMs);
    }
  }

  /** Null: no answer, and no hope for one. */
  #ask(leaderId: number, request: QuorumRequest, timeoutMs: number): Promise<QuorumReply | null> {
    const { links, clusterId } = this.#options;
    const rpc = rpcOf(request);
    const message = rpc.toRequest(request, {
      clusterId: clusterId(),
      timeoutMs: Math.ceil(timeoutMs),
    });
    return new Promise((resolve) => {
      const giveUp = (): void => resolve(null);
      this.#impatient.add(giveUp);
      links.request(leaderId, rpc.api, rpc.version, message, timeoutMs, (answer) => {
        this.#impatient.delete(giveUp);
        resolve(answer.failure === null ? rpc.fromReply(answer.value, request) : null);
      });
    });
  }

  /**
   * What the leader's threads have acted on, this node may not have heard of. Who asked here should find it here: the
   * leader says up to where everything is committed, and the answer waits until this node has got there.
   */
  async #caughtUp(
    leaderId: number,
    request: QuorumRequest,
    reply: QuorumReply,
    deadlineMs: number,
  ): Promise<QuorumReply> {
    if (!appliedEverywhere.has(request.type) || reply.result === null) return reply;
    const leftMs = (): number => Math.max(1, deadlineMs - performance.now());
    const description = (await this.#ask(
      leaderId,
      { type: 'describeQuorum' },
      Math.min(limits.describeMs, leftMs()),
    )) as QuorumReplyOf<'describeQuorum'> | null;
    const highWatermark = description?.result?.highWatermark ?? 0;
    const caughtUp = this.#options.host.applied(highWatermark - 1).then(() => reply);
    await this.#unlessLate(caughtUp, leftMs());
    return reply;
  }

  #unlessLate(reply: Promise<QuorumReply>, timeoutMs: number): Promise<QuorumReply> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(timedOut), timeoutMs);
      void reply.then((value) => {
        clearTimeout(timer);
        resolve(value);
      });
    });
  }

  /** Fulfilled when another leader is known, or none, or when the time is over. */
  #leaderChange(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#impatient.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#impatient.add(wake);
    });
  }
}

const timedOut = failure(
  ErrorCode.REQUEST_TIMED_OUT,
  'The controller did not answer in time; it may still do what was asked.',
);
