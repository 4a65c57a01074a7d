/**
 * DescribeLogDirs (key 35, KIP-113): how much each partition takes in which log directory.
 *
 * v2 flexible (KIP-482) · v3 top-level error code · v4 size of the volume and what is free (KIP-827) · v5 cordoned
 * directories (KIP-1066), which there are none of.
 *
 * Thread: the connection's shard asks all shards for their partitions.
 */
import { statfsSync } from 'node:fs';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { LogDirUse, PartitionUse } from '../log_dir_use.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

type Request = MessageTypes['DescribeLogDirsRequest'];
type Response = MessageInputs['DescribeLogDirsResponse'];
type DirAnswer = Response['results'][number];

/** What the handler reads of its shard. */
type Services = Pick<ShardServices, 'calls' | 'config'>;

export function describeLogDirsHandler(services: Services): Handler {
  return rpc('DescribeLogDirs', 1, 5, (request) => answerDescribeLogDirs(services, request));
}

/** The answer itself: every log directory, with those partitions that were asked for. Never rejects. */
async function answerDescribeLogDirs(
  { calls, config }: Services,
  { topics }: Request,
): Promise<Response> {
  const asked =
    topics === null
      ? null
      : topics.map(({ topic, partitions }) => ({ topic, partitions: [...partitions] }));
  const shards = await calls.callAll('logDirs.use', { topics: asked });
  const results = config.logDirs.map((path) =>
    dirAnswer(
      path,
      shards.flatMap((dirs) => dirs.filter((dir) => dir.path === path)),
    ),
  );
  return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, results };
}

function dirAnswer(path: string, parts: readonly LogDirUse[]): DirAnswer {
  if (parts.some(({ isOffline }) => isOffline))
    return { errorCode: ErrorCode.KAFKA_STORAGE_ERROR, logDir: path, topics: [] };
  const byTopic = new Map<string, PartitionUse[]>();
  for (const { partitions } of parts)
    for (const partition of partitions) {
      const found = byTopic.get(partition.topic);
      if (found === undefined) byTopic.set(partition.topic, [partition]);
      else found.push(partition);
    }
  return {
    errorCode: ErrorCode.NONE,
    logDir: path,
    topics: [...byTopic].map(([name, partitions]) => ({
      name,
      partitions: partitions.map(({ partition, bytes }) => ({
        partitionIndex: partition,
        partitionSize: BigInt(bytes),
        // How far it is behind the high watermark: the leader is not.
        offsetLag: 0n,
        isFutureKey: false,
      })),
    })),
    ...volumeOf(path),
  };
}

/**
 * Size of the volume and what is free for us, in bytes; -1 where the system does not say. statfs(2) of a local volume waits
 * for nothing: the kernel knows both.
 */
function volumeOf(path: string): { totalBytes: bigint; usableBytes: bigint } {
  try {
    const { bsize, blocks, bavail } = statfsSync(path, { bigint: true });
    return { totalBytes: bsize * blocks, usableBytes: bsize * bavail };
  } catch {
    return { totalBytes: -1n, usableBytes: -1n };
  }
}
