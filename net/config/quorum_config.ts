/**
 * The metadata quorum, and how this node lives in it: `controller.quorum.*`, heartbeats. Kafka's names in camel case,
 * times in milliseconds.
 */
import { parseEndpoint } from './listeners.ts';
import type { Settings } from './settings.ts';

/** A voter as `controller.quorum.voters` has it. */
export interface QuorumVoter {
  readonly nodeId: number;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface QuorumConfig {
  /**
   * Those that a cluster forms with, and where they are found later, by id. Empty: this node is alone, and its quorum has
   * one voter. A node that is not among them joins as an observer.
   */
  readonly voters: readonly QuorumVoter[];
  readonly electionTimeoutMs: number;
  readonly electionBackoffMaxMs: number;
  /** How long a follower waits for an answer of the leader, and the leader for a majority's fetches. */
  readonly fetchTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly retryBackoffMs: number;
  readonly fetchMaxBytes: number;
  readonly fetchSnapshotMaxBytes: number;
  readonly snapshotEveryBytes: number;
  /** 0: whatever its age. */
  readonly snapshotIntervalMs: number;
  readonly brokerHeartbeatIntervalMs: number;
  readonly brokerSessionTimeoutMs: number;
  /** Whether a stop first moves the leadership of partitions to others. */
  readonly controlledShutdownEnable: boolean;
}

const key = 'controller.quorum.voters';

export function readQuorum(settings: Settings, nodeId: number): QuorumConfig {
  const interval = settings.number('broker.heartbeat.interval.ms');
  const session = settings.number('broker.session.timeout.ms');
  if (interval < 1) settings.refuse('broker.heartbeat.interval.ms', 'allowed: at least 1');
  else if (session <= interval)
    settings.refuse(
      'broker.session.timeout.ms',
      `a broker would be taken for dead between two heartbeats. Allowed: more than broker.heartbeat.interval.ms=${interval}`,
    );
  refuseBootstrapServers(settings);
  return {
    voters: readVoters(settings, nodeId),
    electionTimeoutMs: settings.number('controller.quorum.election.timeout.ms'),
    electionBackoffMaxMs: settings.number('controller.quorum.election.backoff.max.ms'),
    fetchTimeoutMs: settings.number('controller.quorum.fetch.timeout.ms'),
    requestTimeoutMs: settings.number('controller.quorum.request.timeout.ms'),
    retryBackoffMs: settings.number('controller.quorum.retry.backoff.ms'),
    fetchMaxBytes: settings.number('controller.quorum.fetch.max.bytes'),
    fetchSnapshotMaxBytes: settings.number('controller.quorum.fetch.snapshot.max.bytes'),
    snapshotEveryBytes: settings.number('metadata.log.max.record.bytes.between.snapshots'),
    snapshotIntervalMs: settings.number('metadata.log.max.snapshot.interval.ms'),
    brokerHeartbeatIntervalMs: interval,
    brokerSessionTimeoutMs: session,
    controlledShutdownEnable: settings.boolean('controlled.shutdown.enable'),
  };
}

function readVoters(settings: Settings, nodeId: number): QuorumVoter[] {
  const texts = settings.list(key);
  const voters: QuorumVoter[] = [];
  for (const text of texts) {
    const voter = parseVoter(text);
    if (voter !== null) voters.push(voter);
    else
      settings.refuse(
        key,
        `allowed: id@host:port with a port from 1 to 65535, comma-separated. ${text} is not that`,
      );
  }
  const [only] = voters;
  if (texts.length === 1 && only !== undefined) {
    if (only.nodeId !== nodeId)
      settings.refuse(
        key,
        `a single voter must be this node. Allowed: ${nodeId}@host:port, all voters of a cluster, or leave it out`,
      );
    // Alone, as without the key: nobody else is to be talked to.
    return [];
  }
  checkVoters(settings, voters, nodeId);
  return voters.sort((a, b) => a.nodeId - b.nodeId);
}

function parseVoter(text: string): QuorumVoter | null {
  const match = /^(\d{1,10})@(.+)$/.exec(text);
  const [, id = '', address = ''] = match ?? [];
  const endpoint = parseEndpoint(`V://${address}`);
  if (match === null || endpoint === null || Number(id) > 0x7fffffff) return null;
  const { host, port } = endpoint;
  return host === '' || port === 0 ? null : { nodeId: Number(id), host, port };
}

function checkVoters(settings: Settings, voters: readonly QuorumVoter[], nodeId: number): void {
  const ids = new Set<number>();
  const places = new Set<string>();
  for (const { nodeId: id, host, port } of voters) {
    const place = `${host}:${port}`;
    if (ids.has(id)) settings.refuse(key, `the id ${id} stands twice. Allowed: each once`);
    else if (places.has(place))
      settings.refuse(key, `${place} stands twice. Allowed: each address once`);
    ids.add(id);
    places.add(place);
  }
  if (!settings.has(key) || voters.length === 0) return;
  if (!ids.has(nodeId))
    settings.problems.warn(
      `node.id=${nodeId} is not among the voters of controller.quorum.voters: this node joins their cluster as an observer.`,
    );
  if (voters.length % 2 === 0)
    settings.problems.warn(
      `controller.quorum.voters names ${voters.length} voters: an even number survives no more failures than one less.`,
    );
}

/** Kafka finds its quorum by these where the voters are only in the metadata; here they are named. */
function refuseBootstrapServers(settings: Settings): void {
  if (settings.list('controller.quorum.bootstrap.servers').length <= 1) return;
  settings.refuse(
    'controller.quorum.bootstrap.servers',
    `several are not supported yet in this version. Allowed: one, this node, or leave it out and set ${key}`,
  );
}
