/**
 * A member of a consumer group of KIP-848 as a raw client: ConsumerGroupHeartbeat 1, which has tagged fields, written by
 * hand. It takes up and gives back what it is told to at once, and says so in its next heartbeat, which follows at once,
 * too, as in Kafka's own client.
 */
import { randomBytes } from 'node:crypto';
import { ByteReader, type ByteWriter, request } from './wire.ts';
import type { WireClient } from './wire_client.ts';

const CONSUMER_GROUP_HEARTBEAT = 68;
const REBALANCE_TIMEOUT_MS = 300_000;
/** UNRELEASED_INSTANCE_ID and the like do not happen here; COORDINATOR_LOAD_IN_PROGRESS and its kin do. */
const COMES_UP: readonly number[] = [14, 15, 16];
const RETRY_MS = 50;
/** A topic id stands before its partitions. */
const UUID_BYTES = 16;

export class ConsumerMember {
  readonly #client: WireClient;
  readonly #group: string;
  readonly #topic: string;
  readonly #memberId = randomBytes(16).toString('base64url');
  /** Partitions of the one topic. */
  owned: number[] = [];
  epoch = 0;
  heartbeats = 0;
  failure: Error | null = null;
  #topicId = Buffer.alloc(UUID_BYTES);
  #timer: NodeJS.Timeout | null = null;
  #isOver: boolean = false;

  constructor(client: WireClient, group: string, topic: string) {
    this.#client = client;
    this.#group = group;
    this.#topic = topic;
    client.onFailure((error) => {
      this.failure = error;
    });
  }

  /** Sends the first heartbeat; the others follow by themselves. Resolves with its answer. */
  join(): Promise<void> {
    return new Promise((resolve) => this.#beat(true, resolve));
  }

  close(): void {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#client.close();
  }

  /** @param isFull Whether it says all about itself, as it does when it joins and when its partitions have changed. */
  #beat(isFull: boolean, onAnswer?: () => void): void {
    this.heartbeats += 1;
    this.#client.send(this.#frame(isFull), (body) => {
      this.#answered(body, isFull);
      onAnswer?.();
    });
  }

  #frame(isFull: boolean): Buffer {
    const joins = this.epoch === 0;
    const writer = request(CONSUMER_GROUP_HEARTBEAT, 1).int8(0);
    compactString(writer, this.#group);
    compactString(writer, this.#memberId);
    writer.int32(this.epoch);
    // Neither instance nor rack.
    writer.int8(0).int8(0);
    writer.int32(joins ? REBALANCE_TIMEOUT_MS : -1);
    if (joins) {
      writer.int8(2);
      compactString(writer, this.#topic);
    } else writer.int8(0);
    // Neither a regular expression nor an assignor.
    writer.int8(0).int8(0);
    if (isFull) this.#writeOwned(writer);
    else writer.int8(0);
    return writer.int8(0).frame();
  }

  #writeOwned(writer: ByteWriter): void {
    if (this.owned.length === 0) {
      writer.int8(1);
      return;
    }
    writer.int8(2).raw(this.#topicId);
    unsignedVarint(writer, this.owned.length + 1);
    for (const partition of this.owned) writer.int32(partition);
    writer.int8(0);
  }

  #answered(body: Buffer, wasFull: boolean): void {
    if (this.#isOver) return;
    // The header's tagged fields, then the throttle time.
    const reader = new ByteReader(body, 1 + 4);
    const code = reader.int16();
    const message = compactText(reader);
    if (COMES_UP.includes(code)) {
      this.#timer = setTimeout(() => this.#beat(wasFull), RETRY_MS);
      return;
    }
    if (code !== 0) {
      this.failure = new Error(`ConsumerGroupHeartbeat: error ${code}, ${message}`);
      return;
    }
    compactText(reader);
    this.epoch = reader.int32();
    const intervalMs = reader.int32();
    const assigned = reader.int8() === 1 ? this.#readAssignment(reader) : null;
    if (assigned !== null && assigned.join() !== this.owned.join()) {
      this.owned = assigned;
      this.#beat(true);
    } else this.#timer = setTimeout(() => this.#beat(false), intervalMs);
  }

  #readAssignment(reader: ByteReader): number[] {
    const partitions: number[] = [];
    const topics = readUnsignedVarint(reader) - 1;
    for (let topic = 0; topic < topics; topic += 1) {
      this.#topicId = Buffer.from(reader.take(UUID_BYTES));
      const count = readUnsignedVarint(reader) - 1;
      for (let index = 0; index < count; index += 1) partitions.push(reader.int32());
      reader.int8();
    }
    return partitions.sort((a, b) => a - b);
  }
}

function unsignedVarint(writer: ByteWriter, value: number): void {
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) writer.raw(Uint8Array.of((rest & 0x7f) | 0x80));
  writer.raw(Uint8Array.of(rest));
}

function compactString(writer: ByteWriter, value: string): void {
  const bytes = Buffer.from(value, 'utf8');
  unsignedVarint(writer, bytes.length + 1);
  writer.raw(bytes);
}

function readUnsignedVarint(reader: ByteReader): number {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = reader.int8() & 0xff;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

function compactText(reader: ByteReader): string | null {
  const length = readUnsignedVarint(reader) - 1;
  return length < 0 ? null : reader.take(length).toString('utf8');
}
