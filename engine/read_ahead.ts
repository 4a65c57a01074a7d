/**
 * Brings cold ranges of files into the page cache, off the thread, for those who must not wait for the device on it.
 *
 * Fair: each asker (a connection) has its requests served in order and, whatever it asked for, gets one piece at a time
 * in turn with the others. Bounded: so many pieces are under way for a device and in all, so that the flushes in the
 * same pool find a thread, and on the device a queue that is short.
 *
 * Thread: the shard's. Memory: the requests; whoever asks keeps the file open until `done` was called, or `cancel` has
 * said that it never will be. Durable: nothing.
 */
import type { PageCache } from './ports.ts';

export interface ReadAheadOptions {
  readonly pageCache: PageCache;
  /** Pieces under way at a time. */
  readonly piecesMax: number;
  /** The same for one device. */
  readonly devicePiecesMax: number;
}

export interface ReadAheadTicket {
  /** True: the range will not be read any more, and `done` not be called. False: a piece of it is being read. */
  cancel(): boolean;
}

interface Request {
  readonly asker: Asker;
  readonly fd: number;
  readonly end: number;
  readonly done: () => void;
  position: number;
  isReading: boolean;
  isCancelled: boolean;
}

interface Asker {
  readonly key: object;
  readonly device: Device;
  readonly requests: Request[];
}

interface Device {
  /** Those with requests of which none is being read, in turn. */
  readonly ready: Asker[];
  readonly askers: Map<object, Asker>;
  reading: number;
}

export class ReadAhead {
  readonly #options: ReadAheadOptions;
  readonly #devices = new Map<number, Device>();
  #reading = 0;

  constructor(options: ReadAheadOptions) {
    this.#options = options;
  }

  get pageCache(): PageCache {
    return this.#options.pageCache;
  }

  /**
   * Reads the range into the page cache and calls `done`, in a later turn, whether that went well or not.
   * @param asker shares its turn with itself
   */
  request(
    asker: object,
    fd: number,
    position: number,
    length: number,
    done: () => void,
  ): ReadAheadTicket {
    const device = this.#device(fd);
    let entry = device.askers.get(asker);
    if (entry === undefined) {
      entry = { key: asker, device, requests: [] };
      device.askers.set(asker, entry);
      device.ready.push(entry);
    }
    const request: Request = {
      asker: entry,
      fd,
      end: position + length,
      done,
      position,
      isReading: false,
      isCancelled: false,
    };
    entry.requests.push(request);
    this.#readMore();
    return { cancel: () => this.#cancel(request) };
  }

  #device(fd: number): Device {
    const name = this.#options.pageCache.deviceOf(fd);
    let device = this.#devices.get(name);
    if (device === undefined) {
      device = { ready: [], askers: new Map(), reading: 0 };
      this.#devices.set(name, device);
    }
    return device;
  }

  /** Starts what may be started, of each device in turn. */
  #readMore(): void {
    const { piecesMax, devicePiecesMax } = this.#options;
    let found = true;
    while (found) {
      found = false;
      for (const device of this.#devices.values()) {
        if (this.#reading >= piecesMax) return;
        if (device.reading >= devicePiecesMax) continue;
        const asker = device.ready.shift();
        if (asker === undefined) continue;
        this.#read(asker.requests[0] as Request);
        found = true;
      }
    }
  }

  #read(request: Request): void {
    const { pageCache } = this.#options;
    const { device } = request.asker;
    const length = Math.min(request.end - request.position, pageCache.fillBytesMax);
    request.isReading = true;
    device.reading += 1;
    this.#reading += 1;
    pageCache.fill(request.fd, request.position, length, () => {
      request.isReading = false;
      device.reading -= 1;
      this.#reading -= 1;
      request.position += length;
      const isOver = request.isCancelled || request.position >= request.end;
      if (isOver) request.asker.requests.shift();
      this.#requeue(request.asker);
      this.#readMore();
      if (isOver) request.done();
    });
  }

  /** The others first. */
  #requeue(asker: Asker): void {
    if (asker.requests.length > 0) asker.device.ready.push(asker);
    else asker.device.askers.delete(asker.key);
  }

  #cancel(request: Request): boolean {
    const { asker } = request;
    const at = asker.requests.indexOf(request);
    if (at < 0) return true;
    request.isCancelled = true;
    if (request.isReading) return false;
    asker.requests.splice(at, 1);
    if (asker.requests.length > 0) return true;
    const { ready, askers } = asker.device;
    askers.delete(asker.key);
    const turn = ready.indexOf(asker);
    if (turn >= 0) ready.splice(turn, 1);
    return true;
  }
}
