/** Which broker coordinates a group, as far as it is known; asked for once by all who need it. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Cluster } from './cluster.ts';
import { brokerError, ClientCode, MillraceError } from './errors.ts';
import { abortable } from './retry.ts';

/** From this version on several keys can be asked for at once (KIP-699), and the answer is in a list. */
const listVersion = 4;

export class Coordinators {
  readonly #cluster: Cluster;
  readonly #known = new Map<string, number>();
  readonly #asking = new Map<string, Promise<number>>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Throws a MillraceError; what may pass is asked again until `deadlineMs`. */
  find(group: string, deadlineMs: number, signal?: AbortSignal): Promise<number> {
    const known = this.#known.get(group);
    if (known !== undefined) return Promise.resolve(known);
    let asking = this.#asking.get(group);
    if (asking === undefined) {
      asking = this.#ask(group, deadlineMs).finally(() => this.#asking.delete(group));
      this.#asking.set(group, asking);
    }
    return abortable(asking, signal);
  }

  forget(group: string): void {
    this.#known.delete(group);
  }

  async #ask(group: string, deadlineMs: number): Promise<number> {
    const timeoutMs = Math.max(1, deadlineMs - performance.now());
    const reply = await this.#cluster.request(
      'any',
      'FindCoordinator',
      (version) => (version >= listVersion ? { coordinatorKeys: [group] } : { key: group }),
      {
        ...{ timeoutMs, signal: this.#cluster.signal },
        errorOf: (answer) => answer.coordinators[0]?.errorCode ?? answer.errorCode,
      },
    );
    const found = reply.coordinators[0] ?? reply;
    if (found.errorCode !== ErrorCode.NONE)
      throw brokerError(
        found.errorCode,
        `finding the coordinator of group ${JSON.stringify(group)}`,
        found.errorMessage,
      );
    const { nodeId: id, host, port } = found;
    if (id < 0)
      throw new MillraceError(ClientCode.BROKER_UNREACHABLE, `group ${group} has no coordinator`);
    this.#cluster.metadata.setBrokers([{ id, host, port, rack: null }]);
    this.#known.set(group, id);
    return id;
  }
}
