/**
 * The requests of consumer groups as frames, and their answers: classic groups and commits in the last versions without
 * tagged fields (FindCoordinator 1, JoinGroup 5, SyncGroup 3, Heartbeat 3, OffsetCommit 7, OffsetFetch 5). Like
 * `wire.ts` without the broker's codec.
 */
import { sleep } from './children.ts';
import { ByteReader, ByteWriter, request } from './wire.ts';
import type { WireClient } from './wire_client.ts';

const OFFSET_COMMIT = 8;
const OFFSET_FETCH = 9;
const FIND_COORDINATOR = 10;
const JOIN_GROUP = 11;
const HEARTBEAT = 12;
const SYNC_GROUP = 14;
const INCREMENTAL_ALTER_CONFIGS = 44;

const MEMBER_ID_REQUIRED = 79;
const REBALANCE_IN_PROGRESS = 27;
/** COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: of one that is only just coming up. */
export const COMES_UP: readonly number[] = [14, 15, 16];
const TIMEOUT_MS = 60_000;
const SESSION_MS = 45_000;
const RETRY_MS = 50;

/** Asks until a coordinator is there, which creates `__consumer_offsets`. */
export async function findCoordinator(client: WireClient, group: string): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    const frame = request(FIND_COORDINATOR, 1).string(group).int8(0).frame();
    const code = (await client.call(frame, TIMEOUT_MS)).readInt16BE(4);
    if (code === 0) return;
    if (!COMES_UP.includes(code) || performance.now() > deadline)
      throw new Error(`FindCoordinator of ${group}: error ${code}`);
    await sleep(RETRY_MS);
  }
}

/** A member of a classic group that shares a topic with others, one partition each. */
export class ClassicMember {
  readonly group: string;
  readonly client: WireClient;
  readonly #subscription: Buffer;
  #memberId = '';
  #generation = -1;
  /** Members of its generation, as far as it was told: the leader is. */
  size = 0;

  constructor(client: WireClient, group: string, topic: string) {
    this.client = client;
    this.group = group;
    // ConsumerProtocolSubscription 0: version, topics, no user data.
    const subscription = new ByteWriter().int16(0).int32(1).string(topic).int32(-1);
    this.#subscription = subscription.frame().subarray(4);
  }

  /** Joins and takes its assignment; once more while others join meanwhile. */
  async join(): Promise<void> {
    const deadline = performance.now() + TIMEOUT_MS;
    while (performance.now() < deadline) {
      const joined = joinAnswer(await this.client.call(this.#joinFrame(), TIMEOUT_MS));
      if (joined.memberId !== '') this.#memberId = joined.memberId;
      if (joined.code === MEMBER_ID_REQUIRED) continue;
      if (joined.code !== 0 && !COMES_UP.includes(joined.code))
        throw new Error(`JoinGroup of ${this.group}: error ${joined.code}`);
      if (joined.code !== 0) await sleep(RETRY_MS);
      else {
        this.#generation = joined.generation;
        this.size = joined.members.length;
        const code = await this.#sync(joined.members);
        if (code === 0) return;
        if (code !== REBALANCE_IN_PROGRESS)
          throw new Error(`SyncGroup of ${this.group}: error ${code}`);
      }
    }
    throw new Error(`${this.group} is not stable after ${TIMEOUT_MS} ms`);
  }

  #joinFrame(): Buffer {
    return request(JOIN_GROUP, 5)
      .string(this.group)
      .int32(SESSION_MS)
      .int32(TIMEOUT_MS)
      .string(this.#memberId)
      .string(null)
      .string('consumer')
      .int32(1)
      .string('range')
      .bytes(this.#subscription)
      .frame();
  }

  /** The leader hands out what each gets; here some bytes of the usual length. */
  async #sync(members: readonly string[]): Promise<number> {
    const writer = request(SYNC_GROUP, 3).string(this.group).int32(this.#generation);
    writer.string(this.#memberId).string(null);
    writer.array(members, (id) => {
      writer.string(id).bytes(this.#subscription);
    });
    return (await this.client.call(writer.frame(), TIMEOUT_MS)).readInt16BE(4);
  }

  /** Whether the group rebalances: who hears that must join again. Throws on any other error. */
  async mustRejoin(): Promise<boolean> {
    const code = heartbeatError(await this.client.call(this.heartbeatFrame(), TIMEOUT_MS));
    if (code !== 0 && code !== REBALANCE_IN_PROGRESS)
      throw new Error(`Heartbeat in ${this.group}: error ${code}`);
    return code !== 0;
  }

  heartbeatFrame(): Buffer {
    const writer = request(HEARTBEAT, 3).string(this.group).int32(this.#generation);
    return writer.string(this.#memberId).string(null).frame();
  }

  commitFrame(topic: string, partition: number, offset: number): Buffer {
    const committer = { group: this.group, generation: this.#generation, memberId: this.#memberId };
    return commitFrame(committer, topic, [partition], offset);
  }
}

export function heartbeatError(body: Buffer): number {
  return body.readInt16BE(4);
}

function joinAnswer(body: Buffer): {
  code: number;
  generation: number;
  memberId: string;
  members: string[];
} {
  const reader = new ByteReader(body);
  reader.int32();
  const code = reader.int16();
  const generation = reader.int32();
  reader.string();
  reader.string();
  const memberId = reader.string() ?? '';
  const members = reader.array(() => {
    const id = reader.string() ?? '';
    reader.string();
    reader.bytes();
    return id;
  });
  return { code, generation, memberId, members };
}

/** Who commits; without a member id somebody outside of the group's protocol. */
export interface Committer {
  group: string;
  generation: number;
  memberId: string;
}

/** An OffsetCommit of the same offset for some partitions of one topic. */
export function commitFrame(
  { group, generation, memberId }: Committer,
  topic: string,
  partitions: readonly number[],
  offset: number,
): Buffer {
  const writer = request(OFFSET_COMMIT, 7).string(group).int32(generation).string(memberId);
  writer.string(null).int32(1).string(topic);
  writer.array(partitions, (partition) => {
    writer.int32(partition).int64(offset).int32(-1).string('');
  });
  return writer.frame();
}

/** The first error code of an OffsetCommit answer, 0 for none. */
export function commitError(body: Buffer): number {
  const reader = new ByteReader(body);
  reader.int32();
  const codes = reader.array(() => {
    reader.string();
    return reader.array(() => {
      reader.int32();
      return reader.int16();
    });
  });
  return codes.flat().find((code) => code !== 0) ?? 0;
}

/** The committed offset of one partition, -1 for none; `code` while there is no coordinator or its state is not loaded. */
export async function fetchOffset(
  client: WireClient,
  group: string,
  topic: string,
  partition: number,
): Promise<{ code: number; offset: number }> {
  const writer = request(OFFSET_FETCH, 5).string(group).int32(1).string(topic);
  writer.int32(1).int32(partition);
  const reader = new ByteReader(await client.call(writer.frame(), TIMEOUT_MS));
  reader.int32();
  let offset = -1;
  let partitionCode = 0;
  reader.array(() => {
    reader.string();
    reader.array(() => {
      reader.int32();
      offset = reader.int64();
      reader.int32();
      reader.string();
      partitionCode = reader.int16();
    });
  });
  const code = reader.int16();
  return { code: code === 0 ? partitionCode : code, offset };
}

/** Sets settings of a topic. Throws on an error code. */
export async function alterTopic(
  client: WireClient,
  topic: string,
  configs: Readonly<Record<string, string>>,
): Promise<void> {
  const writer = request(INCREMENTAL_ALTER_CONFIGS, 0).int32(1).int8(2).string(topic);
  writer.array(Object.entries(configs), ([name, value]) => {
    writer.string(name).int8(0).string(value);
  });
  const reader = new ByteReader(await client.call(writer.int8(0).frame(), TIMEOUT_MS));
  reader.int32();
  reader.array(() => {
    const code = reader.int16();
    const message = reader.string();
    reader.int8();
    reader.string();
    if (code !== 0) throw new Error(`settings of ${topic}: error ${code}, ${message}`);
  });
}
