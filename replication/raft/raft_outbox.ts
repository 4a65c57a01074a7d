/**
 * Keeps Raft's order between the vote file and the network: what is posted leaves when every term, vote and cluster id
 * before it is on stable storage.
 *
 * Thread: the quorum's. Concurrency: one write is under way at most; of what is to be persisted meanwhile the newest
 * counts, as each state holds all of what matters.
 */
import { formatQuorumState, type QuorumState, type QuorumStateStore } from './quorum_state.ts';

export interface RaftOutboxOptions {
  readonly stateStore: QuorumStateStore;
  readonly onClusterId: (clusterId: string) => Promise<void>;
  /** The newest state is on stable storage. */
  readonly onPersisted: () => void;
  readonly onFailed: (error: Error) => void;
  /** For tests alone: a voter that forgets its votes. */
  readonly forgets: boolean;
}

export class RaftOutbox {
  readonly #options: RaftOutboxOptions;
  #state: QuorumState | null = null;
  #clusterId: string | null = null;
  #saving: Promise<void> | null = null;
  #posted: (() => void)[] = [];
  #isClosed: boolean = false;

  constructor(options: RaftOutboxOptions) {
    this.#options = options;
  }

  persist(state: QuorumState): void {
    this.#state = state;
    this.#saving ??= this.#saveAll();
  }

  adoptCluster(clusterId: string): void {
    this.#clusterId = clusterId;
    this.#saving ??= this.#saveAll();
  }

  post(send: () => void): void {
    if (this.#isClosed) return;
    if (this.#saving === null) send();
    else this.#posted.push(send);
  }

  /** Fulfilled when nothing is being written any more, well or not. */
  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  /** Nothing leaves any more. */
  close(): void {
    this.#isClosed = true;
    this.#posted = [];
  }

  /** Never rejects. */
  async #saveAll(): Promise<void> {
    try {
      while (this.#state !== null || this.#clusterId !== null) await this.#saveNext();
    } catch (error) {
      this.#saving = null;
      this.#options.onFailed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#saving = null;
    if (this.#isClosed) return;
    const posted = this.#posted;
    this.#posted = [];
    for (const send of posted) send();
    this.#options.onPersisted();
  }

  async #saveNext(): Promise<void> {
    const { stateStore, onClusterId, forgets } = this.#options;
    const clusterId = this.#clusterId;
    const state = this.#state;
    this.#clusterId = null;
    this.#state = null;
    if (clusterId !== null) await onClusterId(clusterId);
    if (state !== null)
      await (forgets ? Promise.resolve() : stateStore.save(formatQuorumState(state)));
  }
}
