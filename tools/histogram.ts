/**
 * Latency histogram with logarithmic buckets: constant memory, no sampling, relative error below 0.1 %.
 *
 * Every bucket of one power of two is cut into 1,024 equal parts, as HdrHistogram does with three
 * significant digits. Values are kept in ticks of 100 ns, so that 0.1 ms still has 1,000 steps and the
 * longest value that fits 32 bits is 429 s, above every time limit of the harness.
 */
const TICKS_PER_MS = 10_000;
const PARTS_BITS = 10;
const PARTS = 1 << PARTS_BITS;
const TICKS_MAX = 0xffff_ffff;
/** Values below `PARTS` have a bucket each; then 22 powers of two with `PARTS` buckets each. */
const BUCKETS = PARTS + (32 - PARTS_BITS) * PARTS;

export class Histogram {
  readonly #counts = new Float64Array(BUCKETS);
  #count = 0;
  #maxTicks = 0;

  get count(): number {
    return this.#count;
  }

  /** The longest value recorded, exact to one tick; 0 when empty. */
  get maxMs(): number {
    return this.#maxTicks / TICKS_PER_MS;
  }

  /** Records one duration in milliseconds. Negative values count as 0, values above 429 s as 429 s. */
  record(ms: number): void {
    const ticks = Math.min(TICKS_MAX, Math.max(0, Math.round(ms * TICKS_PER_MS)));
    const bucket = bucketOf(ticks);
    this.#counts[bucket] = this.#counts[bucket]! + 1;
    this.#count += 1;
    if (ticks > this.#maxTicks) this.#maxTicks = ticks;
  }

  /** Adds all values of `other`. */
  merge(other: Histogram): void {
    for (let bucket = 0; bucket < BUCKETS; bucket += 1)
      this.#counts[bucket] = this.#counts[bucket]! + other.#counts[bucket]!;
    this.#count += other.#count;
    this.#maxTicks = Math.max(this.#maxTicks, other.#maxTicks);
  }

  /**
   * The smallest recorded duration, in milliseconds, that at least `percent` % of the values do not
   * exceed (nearest rank). NaN when empty.
   */
  percentile(percent: number): number {
    if (this.#count === 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil((percent / 100) * this.#count - 1e-9));
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      seen += this.#counts[bucket]!;
      if (seen >= rank) return Math.min(upperTicks(bucket), this.#maxTicks) / TICKS_PER_MS;
    }
    return this.maxMs;
  }
}

function bucketOf(ticks: number): number {
  if (ticks < PARTS) return ticks;
  const power = 31 - Math.clz32(ticks);
  const shift = power - PARTS_BITS;
  return PARTS + shift * PARTS + ((ticks >>> shift) - PARTS);
}

/** The largest tick count that falls into the bucket. */
function upperTicks(bucket: number): number {
  if (bucket < PARTS) return bucket;
  const shift = Math.floor((bucket - PARTS) / PARTS);
  const part = PARTS + ((bucket - PARTS) % PARTS);
  return (part + 1) * 2 ** shift - 1;
}
