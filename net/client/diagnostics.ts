/**
 * What the client tells of its work while it works, by way of `node:diagnostics_channel`: nothing is made, and nothing is
 * called, while nobody listens.
 *
 * Thread: the client's. Listeners are called at once; what one throws is an uncaught exception, as with all such channels.
 */
import { type Channel, channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Endpoint } from './call.ts';
import type { MillraceError } from './errors.ts';
import type { PartitionQueue } from './partition_queue.ts';
import type { RecordBatch } from './record_batch.ts';

/** A request has been answered, or will not be. */
export interface RequestEvent {
  /** Kafka's name of it, such as `Produce`. */
  readonly api: string;
  readonly version: number;
  /** `host:port`. */
  readonly broker: string;
  readonly clientId: string;
  /** From when it was made: with its turn behind others, and, of Fetch and JoinGroup, with the broker's waiting. */
  readonly latencyMs: number;
  /** Of the whole frames; 0 for no answer. */
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Why there is no answer. Error codes within an answer are not looked at. */
  readonly error: MillraceError | null;
}

/** A producer's batch has been delivered, or has failed. */
export interface BatchEvent {
  readonly topic: string;
  readonly partition: number;
  readonly records: number;
  /** Over the wire, compressed. */
  readonly bytes: number;
  /** How often it was sent again. */
  readonly retries: number;
  /** From its first message's `send`: with the lingering, and all retries. */
  readonly latencyMs: number;
  readonly error: unknown;
}

/** What a producer has sent since it was made. */
export interface SenderCounters {
  requests: number;
  batches: number;
  records: number;
  /** Bytes of batches as they were sent, retries included. */
  bytes: number;
  /** Batches that were sent again. */
  retries: number;
  /** Messages that could not be delivered. */
  failedRecords: number;
}

export interface ClientEvents {
  readonly request: RequestEvent;
  readonly batch: BatchEvent;
}

const channels: { readonly [N in keyof ClientEvents]: Channel } = {
  request: channel('millrace.client.request'),
  batch: channel('millrace.client.batch'),
};

/**
 * Calls `listener` for each event, of all clients of this process, until the returned function is called. The same as
 * subscribing to the channel `millrace.client.<name>` of `node:diagnostics_channel`.
 */
export function observe<N extends keyof ClientEvents>(
  name: N,
  listener: (event: ClientEvents[N]) => void,
): () => void {
  const called = (event: unknown): void => listener(event as ClientEvents[N]);
  const { name: channelName } = channels[name];
  subscribe(channelName, called);
  return () => void unsubscribe(channelName, called);
}

/** What is known of a request that has ended. */
interface EndedRequest {
  readonly api: string;
  readonly version: number;
  /** By `performance.now()`. */
  readonly begunMs: number;
  readonly requestBytes: number;
}

export function tellRequest(
  { api, version, begunMs, requestBytes }: EndedRequest,
  { host, port }: Endpoint,
  clientId: string,
  responseBytes: number,
  error: MillraceError | null,
): void {
  if (!channels.request.hasSubscribers) return;
  const event: RequestEvent = {
    ...{ api, version, broker: `${host}:${port}`, clientId },
    ...{ latencyMs: performance.now() - begunMs, requestBytes, responseBytes, error },
  };
  channels.request.publish(event);
}

export function tellBatch(
  { topic, partition }: PartitionQueue,
  batch: RecordBatch,
  error: unknown,
): void {
  if (!channels.batch.hasSubscribers) return;
  const event: BatchEvent = {
    ...{ topic, partition, records: batch.count, bytes: batch.sealedBytes },
    retries: Math.max(0, batch.attempts - 1),
    ...{ latencyMs: performance.now() - batch.createdMs, error },
  };
  channels.batch.publish(event);
}
