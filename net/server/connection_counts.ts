/**
 * The connections that are open, counted for the whole broker whatever listener they came by, and the limits on them
 * (Kafka's `ConnectionQuotas`).
 *
 * Thread: main.
 */

export interface ConnectionLimits {
  /** `max.connections`. */
  readonly connectionsMax: number;
  /** `max.connections.per.ip`. */
  readonly connectionsPerIpMax: number;
  /** `max.connections.per.ip.overrides`: by address. */
  readonly connectionsPerIpOverrides?: Readonly<Record<string, number>>;
}

export class ConnectionCounts {
  #limits: ConnectionLimits;
  /** Address by connection id, of all that are open. */
  readonly #open = new Map<number, string>();
  /** Invariant: for each address the number of its entries in `#open`; no zeros. */
  readonly #openByAddress = new Map<string, number>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Limits for connections from now on; those that are open stay. */
  limit(limits: ConnectionLimits): void {
    this.#limits = limits;
  }

  get open(): number {
    return this.#open.size;
  }

  openFrom(address: string): number {
    return this.#openByAddress.get(plainAddress(address)) ?? 0;
  }

  /** Why a connection from this address is refused, or null. */
  refusal(address: string): string | null {
    const { connectionsMax, connectionsPerIpMax, connectionsPerIpOverrides } = this.#limits;
    if (this.#open.size >= connectionsMax) return `max.connections is ${connectionsMax}`;
    const plain = plainAddress(address);
    const own = connectionsPerIpOverrides;
    const override = own !== undefined && Object.hasOwn(own, plain) ? own[plain] : undefined;
    if (this.openFrom(address) < (override ?? connectionsPerIpMax)) return null;
    return override === undefined
      ? `max.connections.per.ip is ${connectionsPerIpMax}`
      : `max.connections.per.ip.overrides has ${override} for ${plain}`;
  }

  add(id: number, address: string): void {
    const plain = plainAddress(address);
    this.#open.set(id, plain);
    this.#openByAddress.set(plain, this.openFrom(plain) + 1);
  }

  /** False when no such connection is open. */
  remove(id: number): boolean {
    const address = this.#open.get(id);
    if (address === undefined) return false;
    this.#open.delete(id);
    const left = this.openFrom(address) - 1;
    if (left > 0) this.#openByAddress.set(address, left);
    else this.#openByAddress.delete(address);
    return true;
  }
}

/** IPv4 addresses look like this on a socket that listens for both families. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}
