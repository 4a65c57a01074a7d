/**
 * A broker's life in a cluster as the controller sees it: it registers, sends heartbeats, is unfenced when it has caught
 * up with the metadata, and asks to be let go before it stops.
 *
 * Thread: main. Concurrency: one request to the controller at a time. Heartbeats stop while a thread of this process does
 * not answer: a broker whose shard hangs must be a dead one.
 *
 * Legal transitions:
 *   registering --registered--> starting     heartbeats want it fenced
 *   starting --setReady--> fenced
 *   fenced --unfenced by a heartbeat--> serving
 *   serving --fenced by a heartbeat--> fenced     its heartbeats had not arrived; it comes back by itself
 *   starting, fenced, serving --the controller does not know it--> registering
 *   any --shutDown--> leaving --let go, or too late--> ended
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type {
  BrokerHeartbeatResult,
  ControllerReply,
  RegisterBrokerRequest,
} from '../replication/metadata/controller_api.ts';
import type { Logger } from './logger.ts';
import type { QuorumReplyOf, QuorumRequestOf } from './quorum_api.ts';

/** The way to the controller, see `ControllerChannel`. */
export interface ControllerPath {
  request<K extends 'registerBroker' | 'brokerHeartbeat'>(
    request: QuorumRequestOf<K>,
    timeoutMs: number,
  ): Promise<QuorumReplyOf<K>>;
}

export interface BrokerLifecycleOptions {
  readonly controller: ControllerPath;
  readonly registration: RegisterBrokerRequest;
  readonly heartbeatIntervalMs: number;
  readonly sessionTimeoutMs: number;
  /** Offset of the metadata that all threads have acted on. */
  readonly appliedOffset: () => number;
  /** The longest that a thread of this process has been silent. */
  readonly silentMs: () => number;
  /** False when no other member of the quorum is there: then no controller can let the broker go. */
  readonly canBeLetGo: () => boolean;
  /** Ids of log directories that have failed. */
  readonly offlineLogDirs: () => readonly string[];
  readonly logger: Logger;
}

const limits = {
  /** One attempt to register. */
  registerMs: 5_000,
  retryMs: 100,
  /** While the controller moves leadership away, it is asked so often. */
  leavingRetryMs: 20,
  /** A controlled shutdown ends when nobody has answered for so long… */
  leavingSilenceMs: 1_500,
  /** …or after so long, however many partitions there are. */
  leavingMs: 30_000,
} as const;

/** Errors of a registration that go away by themselves. */
const passing: ReadonlySet<number> = new Set([
  ErrorCode.NOT_CONTROLLER,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.DUPLICATE_BROKER_REGISTRATION,
]);

export class BrokerLifecycle {
  readonly #options: BrokerLifecycleOptions;
  #state: State = 'registering';
  #brokerEpoch = -1;
  #isReady: boolean = false;
  /** Another heartbeat is wanted right after the one under way. */
  #isHastened: boolean = false;
  #timer: NodeJS.Timeout | null = null;
  #beating: Promise<void> | null = null;
  readonly #unfenced = Promise.withResolvers<void>();

  constructor(options: BrokerLifecycleOptions) {
    this.#options = options;
  }

  /** -1 before the first registration. */
  get brokerEpoch(): number {
    return this.#brokerEpoch;
  }

  /** Fulfilled when the broker has been unfenced for the first time. */
  get unfenced(): Promise<void> {
    return this.#unfenced.promise;
  }

  /**
   * Registers the broker, which takes as long as it takes: there may be no leader yet. Resolves with the broker epoch; from
   * then on heartbeats go out. Rejects with a text for people when the controller will never have it.
   */
  async register(): Promise<number> {
    const { controller, registration, logger } = this.#options;
    let told = 0;
    while (this.#state === 'registering') {
      // This process has lost nothing since it registered last.
      const previousBrokerEpoch =
        this.#brokerEpoch >= 0 ? this.#brokerEpoch : registration.previousBrokerEpoch;
      const request = { type: 'registerBroker' as const, ...registration, previousBrokerEpoch };
      const reply = await controller.request<'registerBroker'>(request, limits.registerMs);
      if (reply.result !== null) {
        this.#brokerEpoch = reply.result.brokerEpoch;
        logger.info({ brokerEpoch: this.#brokerEpoch }, 'registered with the controller');
        this.#enter(this.#isReady ? 'fenced' : 'starting');
        this.#beatIn(0);
        break;
      }
      if (!passing.has(reply.errorCode))
        throw new Error(`the controller refused the broker: ${reply.errorMessage}`);
      if (told !== reply.errorCode) logger.warn(waitingText(reply, registration.brokerId));
      told = reply.errorCode;
      await delay(limits.retryMs);
    }
    return this.#brokerEpoch;
  }

  /** The broker can serve: it wants to be unfenced. */
  setReady(): void {
    this.#isReady = true;
    if (this.#state !== 'starting') return;
    this.#enter('fenced');
    this.#beatIn(0);
  }

  /** The controller waits to hear how far this broker is: the next heartbeat goes out now. */
  hasten(): void {
    if (this.#state === 'fenced' || this.#state === 'serving') this.#beatIn(0);
  }

  /**
   * Has the controller move leadership away. Resolves when nothing keeps the broker any more, or when the controller cannot
   * be reached. Never rejects.
   */
  async shutDown(): Promise<void> {
    const { logger, canBeLetGo } = this.#options;
    const wasKnown = this.#brokerEpoch >= 0 && this.#state !== 'registering';
    this.#enter('leaving');
    this.#stopTimer();
    await this.#beating;
    const startedMs = performance.now();
    let answeredMs = startedMs;
    while (wasKnown) {
      if (!canBeLetGo()) {
        logger.info('no other node of the quorum is there: leadership stays where it is');
        break;
      }
      const reply = await this.#ask(limits.leavingSilenceMs);
      const nowMs = performance.now();
      if (reply.result !== null) answeredMs = nowMs;
      if (reply.result?.shouldShutDown === true || isUnknown(reply)) break;
      if (nowMs - answeredMs >= limits.leavingSilenceMs || nowMs - startedMs >= limits.leavingMs) {
        logger.warn('leadership could not be moved away before the stop: others will notice it');
        break;
      }
      await delay(limits.leavingRetryMs);
    }
    this.#enter('ended');
  }

  /** No heartbeat any more. */
  close(): void {
    this.#enter('ended');
    this.#stopTimer();
  }

  #enter(state: State): void {
    if (this.#state !== 'ended') this.#state = state;
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #beatIn(ms: number): void {
    this.#stopTimer();
    if (this.#state === 'ended') return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#beating !== null) {
        this.#isHastened = true;
        return;
      }
      this.#beating = this.#beat().finally(() => {
        this.#beating = null;
        if (this.#isHastened) this.hasten();
        this.#isHastened = false;
      });
    }, ms);
  }

  /** Never rejects. Sees to the next one itself. */
  async #beat(): Promise<void> {
    const { heartbeatIntervalMs, sessionTimeoutMs, silentMs, logger } = this.#options;
    if (silentMs() > sessionTimeoutMs / 2) {
      logger.logLimited(
        'heartbeat',
        sessionTimeoutMs,
        'error',
        { silentMs: Math.round(silentMs()) },
        'no heartbeat is sent: a thread of this broker does not respond',
      );
      this.#beatIn(heartbeatIntervalMs);
      return;
    }
    const wasReady = this.#isReady;
    const reply = await this.#ask(Math.max(limits.retryMs, sessionTimeoutMs / 2));
    if (this.#state === 'leaving' || this.#state === 'ended') return;
    if (isUnknown(reply)) {
      await this.#registerAgain();
      return;
    }
    if (reply.result === null) {
      this.#beatIn(limits.retryMs);
      return;
    }
    if (wasReady) this.#follow(reply.result);
    // Until it serves, it wants to know at once.
    const soon = this.#isReady && this.#state === 'fenced';
    this.#beatIn(soon ? Math.min(limits.leavingRetryMs, heartbeatIntervalMs) : heartbeatIntervalMs);
  }

  #follow({ isFenced }: BrokerHeartbeatResult): void {
    const { logger } = this.#options;
    if (isFenced === (this.#state === 'fenced')) return;
    this.#enter(isFenced ? 'fenced' : 'serving');
    if (isFenced) {
      logger.warn('the controller has fenced this broker: its heartbeats did not arrive in time');
      return;
    }
    logger.info('the controller has unfenced this broker: it may lead partitions');
    this.#unfenced.resolve();
  }

  async #registerAgain(): Promise<void> {
    const { logger } = this.#options;
    logger.warn('the controller does not know this broker any more: registering again');
    this.#enter('registering');
    try {
      await this.register();
    } catch (error) {
      logger.error({ error }, 'the broker cannot register again; restart it');
    }
  }

  #ask(timeoutMs: number): Promise<ControllerReply<BrokerHeartbeatResult>> {
    const { controller, registration, appliedOffset, offlineLogDirs } = this.#options;
    return controller.request<'brokerHeartbeat'>(
      {
        type: 'brokerHeartbeat',
        brokerId: registration.brokerId,
        brokerEpoch: this.#brokerEpoch,
        currentMetadataOffset: appliedOffset(),
        wantFence: !this.#isReady,
        wantShutDown: this.#state === 'leaving',
        offlineLogDirs: offlineLogDirs(),
      },
      timeoutMs,
    );
  }
}

type State = 'registering' | 'starting' | 'fenced' | 'serving' | 'leaving' | 'ended';

function isUnknown({ errorCode }: ControllerReply<unknown>): boolean {
  return (
    errorCode === ErrorCode.STALE_BROKER_EPOCH || errorCode === ErrorCode.BROKER_ID_NOT_REGISTERED
  );
}

function waitingText(reply: ControllerReply<unknown>, brokerId: number): string {
  switch (reply.errorCode) {
    case ErrorCode.DUPLICATE_BROKER_REGISTRATION:
      return `another process is registered as broker ${brokerId}, or this one's last run has not been given up yet: waiting`;
    default:
      return 'the metadata quorum has no leader yet that could register this broker: waiting. Is a majority of controller.quorum.voters running?';
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
