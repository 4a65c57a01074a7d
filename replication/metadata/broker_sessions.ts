/**
 * When a controller last heard of each broker, and what the brokers said (KIP-631).
 *
 * Thread and owner: those of the controller. Concurrency: none. Durability: none: a new controller begins them anew, so that
 * nobody is fenced for the time that the election took; but for the broker whose silence was the reason for it.
 */

/** Led the metadata quorum, and has been silent. */
export interface SilentNode {
  readonly nodeId: number;
  /** Monotonic ms, the controller's: nothing of it has come since. */
  readonly sinceMs: number;
}

interface Session {
  /** null while the broker is fenced: then nobody waits for its heartbeats. */
  lastContactMs: number | null;
  /** False while the session is only the time that a new controller gives. */
  isHeard: boolean;
  /** Offset of the last metadata record that the broker is known to have acted on. */
  metadataOffset: number;
  /** What the other brokers must have acted on before this one may stop; null outside of a controlled shutdown. */
  shutdownOffset: number | null;
  offlineDirs: ReadonlySet<string>;
}

const noDirs: ReadonlySet<string> = new Set();

export class BrokerSessions {
  readonly #timeoutMs: number;
  readonly #sessions = new Map<number, Session>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** The broker is unfenced: from then on it has to be heard of. */
  begin(brokerId: number, atMs: number): void {
    this.#session(brokerId).lastContactMs = atMs;
  }

  /** The broker is fenced. What it has said stands. */
  end(brokerId: number): void {
    const session = this.#session(brokerId);
    session.lastContactMs = null;
    session.shutdownOffset = null;
  }

  /** What is known of the broker was about another run of it. */
  forget(brokerId: number): void {
    this.#sessions.delete(brokerId);
  }

  heard(brokerId: number, metadataOffset: number, nowMs: number): void {
    const session = this.#session(brokerId);
    session.metadataOffset = metadataOffset;
    session.isHeard = true;
    if (session.lastContactMs !== null) session.lastContactMs = nowMs;
  }

  /** Returns true when a directory is among them that was not before. */
  setOfflineDirs(brokerId: number, dirs: readonly string[]): boolean {
    const session = this.#session(brokerId);
    const isNew = dirs.some((dir) => !session.offlineDirs.has(dir));
    if (isNew || dirs.length !== session.offlineDirs.size) session.offlineDirs = new Set(dirs);
    return isNew;
  }

  isOffline(brokerId: number, directory: string): boolean {
    return this.#sessions.get(brokerId)?.offlineDirs.has(directory) ?? false;
  }

  /**
   * Whether a process is known to be this broker. Before its first heartbeat to this controller it is not: after a failure
   * of the whole cluster nobody waits for sessions of processes that are gone.
   */
  isHeld(brokerId: number, nowMs: number): boolean {
    const session = this.#sessions.get(brokerId);
    if (session === undefined || session.lastContactMs === null || !session.isHeard) return false;
    return nowMs < session.lastContactMs + this.#timeoutMs;
  }

  /** Whether this controller has heard of the broker's present life. */
  isHeard(brokerId: number): boolean {
    return this.#sessions.get(brokerId)?.isHeard ?? false;
  }

  expired(nowMs: number): number[] {
    const ids: number[] = [];
    for (const [id, { lastContactMs }] of this.#sessions)
      if (lastContactMs !== null && nowMs >= lastContactMs + this.#timeoutMs) ids.push(id);
    return ids;
  }

  /** When the first session ends if nothing is heard; Infinity without any. */
  get nextExpiryMs(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { lastContactMs } of this.#sessions.values())
      if (lastContactMs !== null) first = Math.min(first, lastContactMs + this.#timeoutMs);
    return first;
  }

  beginShutdown(brokerId: number, offset: number): void {
    this.#session(brokerId).shutdownOffset = offset;
  }

  shutdownOffset(brokerId: number): number | null {
    return this.#sessions.get(brokerId)?.shutdownOffset ?? null;
  }

  metadataOffset(brokerId: number): number {
    return this.#sessions.get(brokerId)?.metadataOffset ?? -1;
  }

  #session(brokerId: number): Session {
    const known = this.#sessions.get(brokerId);
    if (known !== undefined) return known;
    const session: Session = {
      lastContactMs: null,
      isHeard: false,
      metadataOffset: -1,
      shutdownOffset: null,
      offlineDirs: noDirs,
    };
    this.#sessions.set(brokerId, session);
    return session;
  }
}
