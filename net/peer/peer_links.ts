/**
 * The other brokers of the cluster, as this one calls them: where they are, connections to them, and what to make of
 * failures. The transport of the metadata quorum.
 *
 * Thread: main.
 */
import type { Voter } from '../../replication/metadata/records.ts';
import type {
  RaftFailure,
  RaftReply,
  RaftRequest,
  RaftTransport,
} from '../../replication/raft/messages.ts';
import { hostText } from '../config/listeners.ts';
import type { QuorumVoter } from '../config/quorum_config.ts';
import type { Logger } from '../logger.ts';
import type { ApiName, MessageInputs } from '../protocol/messages.gen.ts';
import type { PeerAddress, PeerFailure } from './peer_connection.ts';
import { type PeerAnswer, PeerNode, type PeerNodeOwner } from './peer_node.ts';
import { raftRpcs } from './raft_rpcs.ts';

export interface PeerLinksOptions {
  readonly nodeId: number;
  /** Where voters are until the metadata says something else. */
  readonly voters: readonly QuorumVoter[];
  readonly logger: Logger;
  /** Where a broker that is no voter takes connections, as far as the metadata says; null when it does not. */
  readonly addressOf: (nodeId: number) => PeerAddress | null;
  /** Nobody listens where the node should be: its process is gone. */
  readonly onRefused: (nodeId: number) => void;
}

export class PeerLinks implements RaftTransport, PeerNodeOwner {
  readonly #options: PeerLinksOptions;
  readonly #nodes = new Map<number, PeerNode>();
  /** Whether the last attempt to reach the node worked, as far as it has been told. */
  readonly #isReached = new Map<number, boolean>();
  #closed: boolean = false;

  constructor(options: PeerLinksOptions) {
    this.#options = options;
    for (const { nodeId, host, port } of options.voters) this.#place(nodeId, { host, port });
  }

  /** See `RaftTransport`. */
  send(
    toNodeId: number,
    request: RaftRequest,
    timeoutMs: number,
    done: (reply: RaftReply | RaftFailure) => void,
  ): void {
    const rpc = raftRpcs[request.type];
    this.request(toNodeId, rpc.api, rpc.version, rpc.toRequest(request), timeoutMs, (answer) => {
      const reply = answer.failure === null ? rpc.fromReply(answer.value) : null;
      done(reply ?? { type: 'failure', reason: answer.failure ?? 'closed' });
    });
  }

  /** See `RaftTransport`. */
  learn(voters: readonly Voter[]): void {
    for (const { voterId, endpoints } of voters) {
      const [endpoint] = endpoints;
      if (endpoint !== undefined) this.#place(voterId, endpoint);
    }
  }

  /** See `PeerNode.send`. A node of which nobody knows where it is has 'closed'. */
  request<N extends ApiName>(
    nodeId: number,
    api: N,
    version: number,
    value: MessageInputs[`${N}Request`],
    timeoutMs: number,
    done: (answer: PeerAnswer<N>) => void,
  ): void {
    const node = this.#node(nodeId);
    if (node === null) setImmediate(() => done({ value: null, failure: 'closed' }));
    else node.send(api, version, value, timeoutMs, done);
  }

  /** Looks whether the node is there, unless there is a connection to it; see `onRefused`. */
  probe(nodeId: number): void {
    this.#node(nodeId)?.probe();
  }

  /** Whether the last attempt to reach the node worked. */
  isReached(nodeId: number): boolean {
    return this.#isReached.get(nodeId) === true;
  }

  /** The node has sent a request. */
  heard(nodeId: number): void {
    this.#nodes.get(nodeId)?.heard();
  }

  close(): void {
    this.#closed = true;
    for (const node of this.#nodes.values()) node.close();
  }

  onReached(node: PeerNode): void {
    if (this.#isReached.get(node.nodeId) === true) return;
    this.#isReached.set(node.nodeId, true);
    this.#options.logger.info(`connected to node ${node.nodeId} at ${textOf(node.address)}`);
  }

  onFailed(node: PeerNode, failure: PeerFailure, reason: string): void {
    if (this.#closed) return;
    if (this.#isReached.get(node.nodeId) !== false) {
      this.#isReached.set(node.nodeId, false);
      const what = failure === 'refused' ? 'nobody listens there' : reason;
      this.#options.logger.warn(
        `node ${node.nodeId} at ${textOf(node.address)} cannot be reached: ${what}. Trying on`,
      );
    }
    if (failure === 'refused') this.#options.onRefused(node.nodeId);
  }

  /** Known voters stay where they are; of others the metadata has the newest place. */
  #node(nodeId: number): PeerNode | null {
    const known = this.#nodes.get(nodeId);
    if (known !== undefined) return known;
    const address = this.#options.addressOf(nodeId);
    return address === null ? null : this.#place(nodeId, address);
  }

  #place(nodeId: number, address: PeerAddress): PeerNode | null {
    if (nodeId === this.#options.nodeId) return null;
    const known = this.#nodes.get(nodeId);
    if (known !== undefined) {
      known.moveTo(address);
      return known;
    }
    const node = new PeerNode(nodeId, address, `node-${this.#options.nodeId}`, this);
    this.#nodes.set(nodeId, node);
    return node;
  }
}

function textOf({ host, port }: PeerAddress): string {
  return `${hostText(host)}:${port}`;
}
