/** `meta.properties`, version 1: which node, cluster and directory this is (KIP-631, KIP-858). */
import type { Disk } from '../ports.ts';
import {
  LogDirectoryError,
  type LogDirectoryOptions,
  writeFlushed,
} from './log_directory_options.ts';

const fileName = 'meta.properties';

export interface MetaProperties {
  /** 22 characters, base64url. '' (no line in the file): the node has joined no cluster yet. */
  readonly clusterId: string;
  readonly nodeId: number;
  readonly directoryId: string;
}

/**
 * Reads the file and compares it with what the broker is configured to be; writes one for a new directory.
 * @throws LogDirectoryError
 */
export function openMetaProperties(
  options: LogDirectoryOptions,
  hasPartitions: boolean,
): MetaProperties {
  const { disk, path } = options;
  const bytes = disk.readFile(`${path}/${fileName}`);
  if (bytes !== null) return check(options, new TextDecoder().decode(bytes));
  if (hasPartitions) {
    throw new LogDirectoryError(
      `${path} holds partitions but no ${fileName}, so that nothing says whose they are. Restore the file, or choose another directory.`,
    );
  }
  const own = options.joinsLater === true ? '' : newId(options);
  const meta = {
    clusterId: options.clusterId ?? own,
    nodeId: options.nodeId,
    directoryId: newId(options),
  };
  writeMetaProperties(disk, path, meta);
  return meta;
}

function check(options: LogDirectoryOptions, text: string): MetaProperties {
  const { path, nodeId } = options;
  const values = parse(text);
  const version = values.get('version');
  if (version !== '1')
    throw new LogDirectoryError(
      `${path}/${fileName} has version ${version ?? 'none'}; only version 1 (Kafka with KRaft) is known.`,
    );
  const foundNode = Number(values.get('node.id') ?? values.get('broker.id'));
  if (foundNode !== nodeId)
    throw new LogDirectoryError(
      `${path} belongs to node ${foundNode}, but node.id is ${nodeId}. Set node.id=${foundNode}, or choose another directory.`,
    );
  const foundCluster = clusterIn(options, values.get('cluster.id') ?? '');
  const foundDirectory = values.get('directory.id');
  if (foundDirectory !== undefined && foundCluster === (values.get('cluster.id') ?? ''))
    return { clusterId: foundCluster, nodeId, directoryId: foundDirectory };
  const meta = {
    clusterId: foundCluster,
    nodeId,
    directoryId: foundDirectory ?? newId(options),
  };
  writeMetaProperties(options.disk, path, meta);
  return meta;
}

/** A directory without a cluster was made for one that had not formed when the broker stopped. */
function clusterIn({ path, clusterId, joinsLater }: LogDirectoryOptions, found: string): string {
  if (found === '') {
    if (clusterId !== null && clusterId !== '') return clusterId;
    if (joinsLater === true) return '';
    throw new LogDirectoryError(
      `${path} was made for a cluster and has not joined one. Set controller.quorum.voters as it was, or choose another directory.`,
    );
  }
  if (clusterId === null || clusterId === found) return found;
  const expected = clusterId === '' ? 'and the metadata to none' : `not to ${clusterId}`;
  throw new LogDirectoryError(
    `${path} belongs to cluster ${found}, ${expected}. Choose another directory.`,
  );
}

function parse(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const match = /^\s*([^#!=:\s]+)\s*[=:]\s*(.*?)\s*$/.exec(line);
    if (match !== null) values.set(match[1] as string, match[2] as string);
  }
  return values;
}

/** Replaces the file. @throws DiskError */
export function writeMetaProperties(disk: Disk, path: string, meta: MetaProperties): void {
  const cluster = meta.clusterId === '' ? '' : `cluster.id=${meta.clusterId}\n`;
  const text = `#\n${cluster}directory.id=${meta.directoryId}\nnode.id=${meta.nodeId}\nversion=1\n`;
  writeFlushed(disk, `${path}/${fileName}`, new TextEncoder().encode(text));
}

/** A random version 4 UUID in Kafka's form, which must not begin with a dash (tools take it for an option). */
function newId({ random }: LogDirectoryOptions): string {
  for (;;) {
    const bytes = random.bytes(16);
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
    const id = Buffer.from(bytes).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}
