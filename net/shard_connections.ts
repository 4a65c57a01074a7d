/**
 * What a shard's connections are made with, from the broker's settings: its share of memory and of libuv's threads.
 *
 * Thread: the shard's own.
 */
import { native } from '../engine/native.ts';
import type { PageCache } from '../engine/ports.ts';
import { ReadAhead } from '../engine/read_ahead.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { Fabric } from './fabric/fabric.ts';
import { ConnectionHost } from './server/connection_host.ts';
import type { Registry } from './server/registry.ts';
import type { ShardOptions } from './shard.ts';
import type { FromShard } from './shard_messages.ts';

/** Of cold ranges, for each device: its queue stays short for the flushes. */
const devicePiecesMax = 2;

/** Reads cold ranges for one of `shardCount` shards. */
export function makeReadAhead(pageCache: PageCache, shardCount: number): ReadAhead {
  return new ReadAhead({ pageCache, piecesMax: readPiecesMax(shardCount), devicePiecesMax });
}

/** The shard's connections, with its share of the broker's request memory. */
export function makeConnections(
  { data, logger, port, fabric: { shardCount } }: ShardOptions,
  registry: Registry,
  fabric: Fabric,
  readAhead: ReadAhead,
): ConnectionHost {
  const config: BrokerConfig = data.config;
  const calls = native();
  const host = new ConnectionHost({
    registry,
    limits: {
      frameBytesMax: config.socketRequestMaxBytes,
      requestMemoryBytesMax: Math.ceil(config.queuedMaxRequestBytes / shardCount),
      idleMsMax: config.connectionsMaxIdleMs,
    },
    log: logger,
    sendFile: calls === null ? null : calls.sendfile,
    readAhead,
    onConnectionClosed: (connectionId) => {
      const message: FromShard = { type: 'shard.closed', connectionId };
      port.postMessage(message);
    },
    isCongested: () => fabric.isCongested,
  });
  host.memory.slabs.onRetired = (slabId) => fabric.retireSlab(slabId);
  return host;
}

/** Pieces of cold ranges that are read at a time: all shards together leave half of libuv's threads to the flushes. */
function readPiecesMax(shardCount: number): number {
  const threads = Number(process.env['UV_THREADPOOL_SIZE']) || 4;
  return Math.max(1, Math.floor(threads / 2 / shardCount));
}
