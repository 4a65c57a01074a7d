/**
 * Asks a broker for its API versions each millisecond on a connection of its own, and notes how long the answers take:
 * what a user who wants something else feels of the load that goes on meanwhile.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Histogram } from '../../tools/histogram.ts';
import { sleep } from './children.ts';
import { ApiKey, request } from './wire.ts';
import { WireClient } from './wire_client.ts';

const INTERVAL_MS = 1;
const GRACE_MS = 5_000;
const NS_PER_MS = 1e6;

export interface ProbeResult {
  /** From the moment a question was sent to its answer. */
  histogram: Histogram;
  /** How late the prober's own event loop was, p99.9: as much of the latency may be its own. */
  ownDelayP999Ms: number;
}

/** Probes for as long as `work` runs. */
export async function probeDuring(
  port: number,
  work: () => Promise<unknown>,
): Promise<ProbeResult> {
  const client = await WireClient.connect(port);
  const own = monitorEventLoopDelay({ resolution: INTERVAL_MS });
  const histogram = new Histogram();
  let failure: Error | null = null;
  client.onFailure((error) => {
    failure = error;
  });
  const ask = (): void => {
    const sentAt = performance.now();
    client.send(request(ApiKey.apiVersions, 0).frame(), () => {
      histogram.record(performance.now() - sentAt);
    });
  };
  own.enable();
  const timer = setInterval(ask, INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
    own.disable();
  }
  // Those that are still unanswered are the slowest: they count.
  for (const end = performance.now() + GRACE_MS; client.pending > 0 && performance.now() < end; )
    await sleep(INTERVAL_MS);
  const unanswered = client.pending;
  client.close();
  if (failure !== null) throw failure as Error;
  if (unanswered > 0)
    throw new Error(`${unanswered} questions were not answered in ${GRACE_MS} ms`);
  return { histogram, ownDelayP999Ms: own.percentile(99.9) / NS_PER_MS };
}
