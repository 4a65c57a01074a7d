/** The doors of a simulated node's quorum: connections to the other voters, and the vote file. */
import type { FileStateStore } from '../../../replication/raft/file_state_store.ts';
import type {
  RaftFailure,
  RaftReply,
  RaftRequest,
  RaftTransport,
} from '../../../replication/raft/messages.ts';
import type { QuorumStateStore } from '../../../replication/raft/quorum_state.ts';
import { type Connection, isFailure } from './network.ts';
import type { NodeWorld } from './node_run.ts';
import type { SimProcess } from './sim_process.ts';

export interface RaftMessage {
  readonly type: 'raft';
  readonly request: RaftRequest;
}

export class SimTransport implements RaftTransport {
  readonly #world: NodeWorld;
  readonly #process: SimProcess;
  readonly #connections = new Map<number, Connection>();

  constructor(world: NodeWorld, process: SimProcess) {
    this.#world = world;
    this.#process = process;
  }

  send(
    toNodeId: number,
    request: RaftRequest,
    timeoutMs: number,
    done: (reply: RaftReply | RaftFailure) => void,
  ): void {
    let connection = this.#connections.get(toNodeId);
    if (connection === undefined || connection.isClosed) {
      connection = this.#world.network.connect(this.#process, toNodeId);
      this.#connections.set(toNodeId, connection);
    }
    const message: RaftMessage = { type: 'raft', request };
    if (request.type === 'vote' && !request.preVote) {
      const self = `node ${this.#process.machineId}`;
      this.#world.metadataWatch.voted(self, request.replicaEpoch, self);
    }
    connection.request(message, timeoutMs, (answer) => {
      if (isFailure(answer)) {
        done(answer);
        return;
      }
      this.#watch(answer as RaftReply);
      done(answer as RaftReply);
    });
  }

  learn(): void {
    // Everybody is where the configuration says.
  }

  #watch(reply: RaftReply): void {
    if (reply.type !== 'fetchSnapshot') return;
    this.#world.count('pieces of snapshots');
    this.#world.moment('snapshot', this.#process.machineId, -1);
  }
}

/** Where a node serves the quorum's requests. */
export function endpointsOf(nodeId: number): { name: string; host: string; port: number }[] {
  return [{ name: 'CONTROLLER', host: `host${nodeId}`, port: 9093 }];
}

/** A voter answers a candidate. */
export function watchVote(
  world: NodeWorld,
  voterId: number,
  request: RaftRequest,
  reply: RaftReply,
): void {
  if (request.type !== 'vote' || reply.type !== 'vote') return;
  if (request.preVote || !reply.voteGranted) return;
  const { replicaEpoch, replicaId } = request;
  world.count('votes');
  world.trace.add(`node ${voterId}`, () => `votes for ${replicaId} in term ${replicaEpoch}`);
  world.metadataWatch.voted(`node ${voterId}`, replicaEpoch, `node ${replicaId}`);
  world.moment('voted', voterId, replicaId);
}

/** The vote file on the node's disk. */
export function stateStoreFor(world: NodeWorld, files: FileStateStore): QuorumStateStore {
  if (world.mutant !== 'vote not persisted') return files;
  return {
    load: () => files.load(),
    save: (text) => (files.load() === null ? files.save(text) : Promise.resolve()),
  };
}
