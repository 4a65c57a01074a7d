/**
 * Who leads instead (KIP-951): what the answers of Produce and Fetch add where a client has asked the wrong broker, or in
 * the wrong epoch, so that it can go on at once and need not ask for metadata first.
 *
 * Thread: the connection's shard, from its copy of the metadata image. Lives as long as one answer is made.
 */
import type { MetadataImage, TopicImage } from '../replication/metadata/image.ts';

/** -1 as the leader: there is none at the moment. */
export interface CurrentLeader {
  readonly leaderId: number;
  readonly leaderEpoch: number;
}

/** Where clients of the listener reach a leader that the answer names. */
export interface NodeEndpoint {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  readonly rack: string | null;
}

export class CurrentLeaders {
  readonly #image: MetadataImage;
  readonly #listener: string;
  readonly #endpoints = new Map<number, NodeEndpoint>();

  /** @param listener the name of that on which the client asks */
  constructor(image: MetadataImage, listener: string) {
    this.#image = image;
    this.#listener = listener;
  }

  /** Of all leaders that were named, each once. Those that the listener's clients cannot reach have none. */
  get nodeEndpoints(): readonly NodeEndpoint[] {
    return [...this.#endpoints.values()];
  }

  /** Undefined: this broker knows of no such partition. */
  name(topic: TopicImage | undefined, partition: number): CurrentLeader | undefined {
    const state = topic?.partitions[partition];
    if (state === undefined) return undefined;
    const { leader: leaderId, leaderEpoch } = state;
    this.#noteEndpoint(leaderId);
    return { leaderId, leaderEpoch };
  }

  #noteEndpoint(nodeId: number): void {
    const endpoint = this.#image.endpoint(nodeId, this.#listener);
    if (endpoint === undefined || !this.#image.isAlive(nodeId)) return;
    const { host, port } = endpoint;
    this.#endpoints.set(nodeId, {
      nodeId,
      host,
      port,
      rack: this.#image.broker(nodeId)?.rack ?? null,
    });
  }
}
