/** What a simulated cluster must be like when nothing fails any more and nobody writes: whole, and the same everywhere. */
import assert from 'node:assert/strict';
import { lastOffsetOf, sizeOf } from '../../../engine/batch/header.ts';
import type { PartitionLog } from '../../../engine/log/partition_log.ts';
import type { ClusterWorld } from './cluster_world.ts';

/** Why the cluster is not at rest yet; null: it is. */
export function unsettled(world: ClusterWorld): string | null {
  for (const node of world.nodes) {
    const { run } = node;
    if (run === null || !run.isReady) return `node ${node.id} has not started`;
    if (run.leaderId === -1) return `node ${node.id} knows no controller`;
    if (!run.isUnfenced) return `node ${node.id} is fenced`;
    if (run.metadataOffset !== world.metadataWatch.committedOffset)
      return `node ${node.id} has metadata up to ${run.metadataOffset} of ${world.metadataWatch.committedOffset}`;
  }
  for (const producer of world.producers)
    if (producer.waiting > 0) return `a producer waits for ${producer.waiting} batches`;
  if (world.members.problem !== null) return world.members.problem;
  for (const partition of world.logs.keys()) {
    const problem = unsettledPartition(world, partition);
    if (problem !== null) return `partition ${partition}: ${problem}`;
  }
  return null;
}

function unsettledPartition(world: ClusterWorld, partition: number): string | null {
  const replicas = world.replicasOf(partition);
  if (replicas.length === 0) return 'is not there';
  const isr = world.isrOf(partition);
  if (isr.length < replicas.length) return `ISR ${isr.join()} of replicas ${replicas.join()}`;
  const leader = world.leaderOf(partition);
  if (leader === null) return 'nobody leads';
  const end = leader.highWatermark(partition);
  for (const node of world.nodes)
    for (const view of node.replicas()) {
      if (view.partition !== partition) continue;
      const { logEndOffset, flushedOffset } = view.log;
      if (view.highWatermark !== end || logEndOffset !== end || flushedOffset !== end)
        return `node ${node.id} ends at ${logEndOffset}, flushed ${flushedOffset}, high watermark ${view.highWatermark}; the leader's is ${end}`;
    }
  for (const reader of world.readers)
    if (partition < world.partitions && reader.positions[partition] !== end)
      return `a reader is at ${reader.positions[partition]} of ${end}`;
  return null;
}

/** Byte by byte: every replica has what was committed and nothing else, every node the same metadata. */
export function checkAtRest(world: ClusterWorld): void {
  for (const [partition, log] of world.logs.entries()) {
    const committed = log.bytes();
    for (const node of world.nodes)
      for (const view of node.replicas()) {
        if (view.partition !== partition) continue;
        const stored = bytesOf(view.log);
        assert(
          Buffer.compare(stored, committed) === 0,
          `node ${node.id} partition ${partition}: ${stored.length} bytes that are not the ${committed.length} that were committed`,
        );
      }
  }
  const images = world.nodes.map(({ run }) => run?.metadataText() ?? '');
  for (const [index, image] of images.entries())
    assert.equal(image, images[0], `node ${index + 1} has other metadata than node 1`);
}

function bytesOf(log: PartitionLog): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (let offset = log.logStartOffset; offset < log.logEndOffset; ) {
    const slice = log.read(offset, 1 << 20, log.logEndOffset, true);
    assert(typeof slice === 'object', `read at ${offset}: ${slice as number}`);
    const bytes = log.copy(slice);
    pieces.push(bytes);
    for (let at = 0; at < bytes.length; at += sizeOf(bytes, at))
      offset = lastOffsetOf(bytes, at) + 1;
  }
  return Buffer.concat(pieces);
}
