/**
 * Responses of one connection on their way out, in order. Bytes go through the stream, small ones joined into one
 * write; file ranges go from the page cache to the socket by sendfile(2), but only while the stream has nothing
 * of its own to write. When the socket is full, a chunk of the range goes through the stream, which waits for
 * room; so do whole ranges where there is no sendfile or no descriptor (another transport than plain TCP).
 * Sending from a range that is not in the page cache would hold up the thread for the device: it is brought in first,
 * piece by piece, and what is behind it waits.
 *
 * Thread: the shard's own. Concurrency: none; `flush` may end in the owner's `onSendFailed`, which closes.
 */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { ReadAhead, ReadAheadTicket } from '../../engine/read_ahead.ts';
import { type FileRange, type RangeHole, readFully } from './file_range.ts';

export const sendLimits: Readonly<
  Record<
    | 'rangeInlineBytesMax'
    | 'joinBytesMax'
    | 'sendfileBytesMax'
    | 'flushBytesMax'
    | 'waitChunkBytes'
    | 'copyChunkBytes',
    number
  >
> = {
  /** Ranges below this are read and joined with the bytes around them. */
  rangeInlineBytesMax: 16 * 1024,
  /** Bytes joined into one write. */
  joinBytesMax: 64 * 1024,
  /** Piece of a file range for one sendfile call, and the most that one flush sends before others get a turn. */
  sendfileBytesMax: 1024 * 1024,
  flushBytesMax: 4 * 1024 * 1024,
  /** Piece of a range that goes through the stream when the socket is full: it only has to wait for room. */
  waitChunkBytes: 16 * 1024,
  /** Piece of a range where there is no sendfile. */
  copyChunkBytes: 128 * 1024,
};

/** sendfile(2) as `engine/native.ts` has it: bytes sent, or minus errno. */
export type SendFile = (
  outFd: number,
  inFd: number,
  position: number,
  byteLength: number,
) => number;

export interface SendOwner {
  /** The stream has taken everything that was given to it: there may be room for more. */
  onSent(): void;
  /** The response cannot be completed; the connection must go. `expected` for peers that went away. */
  onSendFailed(reason: string, expected: boolean): void;
  /** More can be sent, but others should have a turn first: call `flush` again soon. */
  onFlushYield(): void;
}

export interface SendTransport {
  readonly socket: Socket;
  /** The socket's descriptor for sendfile, or -1 when only the stream may be used. */
  readonly fd: number;
  readonly sendFile: SendFile | null;
  /** Null: files are read and sent at once, whatever that waits for. */
  readonly readAhead: ReadAhead | null;
}

type Item = Uint8Array | RangeProgress;

class RangeProgress {
  readonly range: FileRange;
  sent = 0;
  /** So much of the range is in the page cache, or was read into it lately. */
  ready = 0;

  constructor(range: FileRange) {
    this.range = range;
  }
}

const eagain = -constants.errno.EAGAIN;
const eintr = -constants.errno.EINTR;
const peerGone: ReadonlySet<number> = new Set([
  -constants.errno.EPIPE,
  -constants.errno.ECONNRESET,
  -constants.errno.ENOTCONN,
]);
/** The file or socket does not do sendfile: copy instead. */
const unsupported: ReadonlySet<number> = new Set([
  -constants.errno.EINVAL,
  -constants.errno.ENOSYS,
  -constants.errno.EOPNOTSUPP,
]);

export class Outbox {
  readonly #owner: SendOwner;
  readonly #socket: Socket;
  readonly #fd: number;
  readonly #readAhead: ReadAhead | null;
  /** The first item waits for the device. */
  #reading: ReadAheadTicket | null = null;
  #sendFile: SendFile | null;
  #items: Item[] = [];
  #queuedBytes = 0;
  #disposed: boolean = false;
  readonly #onWritten: (error?: Error | null) => void;
  /** Bytes that left through the stream and by sendfile, ever. */
  streamedBytesTotal = 0;
  sendfileBytesTotal = 0;

  constructor(owner: SendOwner, transport: SendTransport) {
    this.#owner = owner;
    this.#socket = transport.socket;
    this.#fd = transport.fd;
    this.#readAhead = transport.readAhead;
    this.#sendFile = transport.fd >= 0 ? transport.sendFile : null;
    // One function for all writes of the connection.
    this.#onWritten = (error) => {
      if (!this.#disposed && (error === null || error === undefined)) this.#owner.onSent();
    };
  }

  /** Bytes of responses not yet with the kernel, file ranges included. */
  get pendingBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Adds a response; `flush` sends it. The bytes must not change any more. Ranges are unpinned in any case. */
  push(bytes: Uint8Array, holes: readonly RangeHole[]): void {
    if (this.#disposed) {
      for (const hole of holes) hole.value.pin?.unpin();
      return;
    }
    if (holes.length === 0) this.#add(bytes, bytes.length);
    else this.#pushWithHoles(bytes, holes);
  }

  /** Sends what the socket takes. */
  flush(): void {
    let left: number = sendLimits.flushBytesMax;
    while (!this.#disposed && this.#items.length > 0 && this.#reading === null) {
      // The stream calls back when it is through, and then it goes on from here. A destroyed one never does,
      // and its descriptor may be another file's by now; its close event is on the way.
      if (this.#socket.writableLength > 0 || this.#socket.destroyed) return;
      if (left <= 0) {
        this.#owner.onFlushYield();
        return;
      }
      const item = this.#items[0] as Item;
      left -= item instanceof RangeProgress ? this.#sendRange(item) : this.#sendBytes(item);
    }
  }

  /** Drops everything and lets go of all files; the socket must be destroyed before. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    const items = this.#items;
    this.#items = [];
    this.#queuedBytes = 0;
    // A range that is being read from is let go of when that ends.
    const isReading = this.#reading?.cancel() === false;
    items.forEach((item, index) => {
      if (item instanceof RangeProgress && !(isReading && index === 0)) item.range.pin?.unpin();
    });
  }

  #add(item: Item, byteLength: number): void {
    if (byteLength > 0) {
      this.#items.push(item);
      this.#queuedBytes += byteLength;
    } else if (item instanceof RangeProgress) item.range.pin?.unpin();
  }

  #isCached({ fd, position, byteLength }: FileRange): boolean {
    return this.#readAhead === null || this.#readAhead.pageCache.isCached(fd, position, byteLength);
  }

  /** Cuts the bytes at the ranges; short ranges that are in the page cache are read here and now, which frees their pins at once. */
  #pushWithHoles(bytes: Uint8Array, holes: readonly RangeHole[]): void {
    let from = 0;
    let parts: Uint8Array[] = [];
    for (const { at, value } of holes) {
      assert(at >= from && at <= bytes.length, `a range at ${at} of ${bytes.length} bytes`);
      parts.push(bytes.subarray(from, at));
      from = at;
      if (value.byteLength < sendLimits.rangeInlineBytesMax && this.#isCached(value)) {
        const inline = Buffer.allocUnsafe(value.byteLength);
        const problem = readFully(value.fd, value.position, inline);
        value.pin?.unpin();
        if (problem !== null) this.#failedRead(problem);
        parts.push(inline);
        continue;
      }
      this.#addJoined(parts);
      parts = [];
      // After a failed read nothing is queued any more, but later pins must go all the same.
      if (this.#disposed) value.pin?.unpin();
      else this.#add(new RangeProgress(value), value.byteLength);
    }
    parts.push(bytes.subarray(from));
    this.#addJoined(parts);
  }

  #addJoined(parts: readonly Uint8Array[]): void {
    if (this.#disposed) return;
    const joined = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
    this.#add(joined, joined.length);
  }

  #sendBytes(first: Uint8Array): number {
    let count = 1;
    let length = first.length;
    for (; count < this.#items.length; count += 1) {
      const next = this.#items[count] as Item;
      if (next instanceof RangeProgress || length + next.length > sendLimits.joinBytesMax) break;
      length += next.length;
    }
    this.#queuedBytes -= length;
    if (count === 1) {
      this.#items.shift();
      this.#write(first);
    } else this.#write(Buffer.concat(this.#items.splice(0, count) as Uint8Array[], length));
    return length;
  }

  #write(bytes: Uint8Array): void {
    this.streamedBytesTotal += bytes.length;
    this.#socket.write(bytes, this.#onWritten);
  }

  /** Sends a piece of the range, one way or the other, and returns its length: 0 when that has to be read first. */
  #sendRange(item: RangeProgress): number {
    const { range } = item;
    const position = range.position + item.sent;
    if (item.sent >= item.ready && !this.#makeReady(item, position)) return 0;
    const left = item.ready - item.sent;
    let count = -1;
    if (this.#sendFile !== null) {
      const most = Math.min(left, sendLimits.sendfileBytesMax);
      do count = this.#sendFile(this.#fd, range.fd, position, most);
      while (count === eintr);
      if (count > 0) {
        this.sendfileBytesTotal += count;
        this.#advance(item, count);
        return count;
      }
      if (count === 0) this.#failedRead(`the file ends at ${position}`);
      else if (peerGone.has(count)) this.#owner.onSendFailed('the peer has gone', true);
      else if (unsupported.has(count)) this.#sendFile = null;
      else if (count !== eagain) this.#failedRead(`sendfile failed with errno ${-count}`);
      if (this.#disposed) return 0;
    }
    const most = this.#sendFile === null ? sendLimits.copyChunkBytes : sendLimits.waitChunkBytes;
    return this.#sendChunk(item, position, Math.min(left, most));
  }

  /** True: a piece of the range from `position` on can be read without waiting. False: `flush` has to stop here. */
  #makeReady(item: RangeProgress, position: number): boolean {
    const { range } = item;
    const left = range.byteLength - item.sent;
    const length = Math.min(left, sendLimits.sendfileBytesMax);
    const readAhead = this.#readAhead;
    if (readAhead === null || readAhead.pageCache.isCached(range.fd, position, length)) {
      item.ready += length;
      return true;
    }
    // Whole pieces even where the range ends before: the next one is likely to begin there.
    const piece = readAhead.pageCache.fillBytesMax;
    this.#reading = readAhead.request(this.#owner, range.fd, position, piece, () => {
      this.#reading = null;
      if (this.#disposed) {
        range.pin?.unpin();
        return;
      }
      // Without asking again: a device that fails shows when the bytes are read to be sent.
      item.ready += Math.min(left, piece);
      this.#owner.onFlushYield();
    });
    return false;
  }

  #sendChunk(item: RangeProgress, position: number, length: number): number {
    const chunk = Buffer.allocUnsafeSlow(length);
    const problem = readFully(item.range.fd, position, chunk);
    if (problem !== null) {
      this.#failedRead(problem);
      return 0;
    }
    this.#advance(item, length);
    this.#write(chunk);
    return length;
  }

  #advance(item: RangeProgress, count: number): void {
    item.sent += count;
    this.#queuedBytes -= count;
    if (item.sent < item.range.byteLength) return;
    this.#items.shift();
    item.range.pin?.unpin();
  }

  #failedRead(problem: string): void {
    this.#owner.onSendFailed(`a response could not be read from its file: ${problem}`, false);
    assert(this.#disposed, 'a connection whose response cannot be completed stays open');
  }
}
