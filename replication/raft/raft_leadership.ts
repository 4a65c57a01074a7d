/** What the listener has been told of this node's leadership, and what a full disk makes of it. */
import type { SilentNode } from '../metadata/broker_sessions.ts';
import type { QuorumListener } from './quorum.ts';

export class Leadership {
  readonly #listener: QuorumListener;
  readonly #core: { readonly epoch: number };
  readonly #log: { readonly endOffset: number; readonly deliveredOffset: number };
  /** Interrupted: it leads, but the listener must not append before the rest of the log is committed. */
  #state: 'none' | 'leading' | 'interrupted' = 'none';

  constructor(
    listener: QuorumListener,
    core: { readonly epoch: number },
    log: { readonly endOffset: number; readonly deliveredOffset: number },
  ) {
    this.#listener = listener;
    this.#core = core;
    this.#log = log;
  }

  get isLeading(): boolean {
    return this.#state === 'leading';
  }

  elected(silent: SilentNode | null): void {
    this.#state = 'leading';
    this.#listener.onElected(this.#core.epoch, this.#log.endOffset, silent);
  }

  resigned(): void {
    const before = this.#state;
    this.#state = 'none';
    if (before === 'leading') this.#listener.onResigned();
  }

  /** Something that was appended has been taken back: the listener must begin anew. */
  interrupt(): void {
    if (this.#state !== 'leading') return;
    this.#state = 'interrupted';
    this.#listener.onResigned();
  }

  /** Leads on, in the same term, as nobody has seen what was taken back; once all that is left is committed. */
  resume(): void {
    if (this.#state === 'interrupted' && this.#log.deliveredOffset === this.#log.endOffset)
      this.elected(null);
  }
}
