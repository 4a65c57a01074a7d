/** Names that the requests of `request_table.ts` use. */
import type { ApiName, MessageInputs } from '../../../net/protocol/messages.gen.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';
import type { ShardWorld } from './shard_world.ts';

export const unknownId: string = uuids(1234)();
export const topics = ['full', 'empty', 'failed'] as const;

export type RequestsOf<N extends ApiName> = (
  world: ShardWorld,
  version: number,
) => MessageInputs[`${N}Request`][];

/** Topics of a version's kind: those that exist, and some that do not. */
export function names(world: ShardWorld, byId: boolean): { name: string; id: string }[] {
  const found = topics.map((name) => ({ name, id: byId ? world.idOf(name) : uuidZero }));
  return [...found, { name: byId ? '' : 'un known/', id: byId ? unknownId : uuidZero }];
}
