/** Where a bit may flip on a simulated disk so that a start must notice it. */
import { baseOffsetOf, sizeOf } from '../../../engine/batch/header.ts';
import { parseCheckpoint } from '../../../engine/log/checkpoint_text.ts';
import type { SimDisk } from '../disk.ts';
import { dataDir } from './node_run.ts';
import { topicName } from './topic_maker.ts';

export interface Place {
  readonly path: string;
  readonly position: number;
}

/** Within the records of a batch. */
const recordsAt = 64;

/** In batches past the recovery point that have others behind them, in the last segments of the topic's partitions. */
export function rottable(disk: SimDisk): Place[] {
  const places: Place[] = [];
  const points = recoveryPoints(disk);
  for (const name of disk.list(dataDir) ?? []) {
    if (!name.startsWith(`${topicName}-`) || name.includes('.')) continue;
    const logs = (disk.list(`${dataDir}/${name}`) ?? []).filter((file) => file.endsWith('.log'));
    const last = logs.sort().at(-1);
    if (last === undefined) continue;
    const path = `${dataDir}/${name}/${last}`;
    const bytes = disk.bytesOf(path);
    const recoveryPoint = points.get(name) ?? 0;
    for (let at = 0; at + recordsAt < bytes.length; ) {
      const next = at + sizeOf(bytes, at);
      if (next <= at || next >= bytes.length) break;
      if (baseOffsetOf(bytes, at) >= recoveryPoint) places.push({ path, position: at + recordsAt });
      at = next;
    }
  }
  return places;
}

/** By the name of the partition's directory. */
function recoveryPoints(disk: SimDisk): ReadonlyMap<string, number> {
  const bytes = disk.readFile(`${dataDir}/recovery-point-offset-checkpoint`);
  const lines = bytes === null ? [] : (parseCheckpoint(bytes) ?? []);
  return new Map(
    lines.map((line) => {
      const [topic = '', partition = '', offset = ''] = line.split(' ');
      return [`${topic}-${partition}`, Number(offset)];
    }),
  );
}
