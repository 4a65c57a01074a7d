/** Settings of simulated brokers, as those of real ones are made. */
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { checkDynamicConfigs, listDefault } from '../../../net/config/dynamic_config.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';
import { checkTopicConfigs } from '../../../net/config/topic_config.ts';
import { LevelLogger, type Logger } from '../../../net/logger.ts';
import { metadataVersionLevel } from '../../../net/metadata_codec.ts';
import { Controller } from '../../../replication/metadata/controller.ts';
import type { SeededRandom } from '../seeded_random.ts';
import type { Swarm } from './swarm.ts';
import type { Trace } from './trace.ts';

const configs = new Map<string, BrokerConfig>();

/** Loading takes long compared with a simulated start, so what is the same is loaded once. */
export function configFor(swarm: Swarm, nodeId: number): BrokerConfig {
  const sets = [
    `node.id=${nodeId}`,
    'log.dirs=/data',
    `replica.lag.time.max.ms=${swarm.replicaLagTimeMaxMs}`,
    'group.min.session.timeout.ms=500',
    'group.initial.rebalance.delay.ms=200',
    ...quorumSettings(swarm.nodes, nodeId),
  ];
  const key = [...sets, swarm.segmentBytes].join();
  const known = configs.get(key);
  if (known !== undefined) return known;
  const { config, errors } = loadBrokerConfig({
    sets,
    surroundings: { cwd: '/', hostname: 'localhost', memoryBytes: 1 << 30 },
  });
  if (config === null) throw new Error(errors.join('; '));
  // Far smaller ones than a topic may ask for, so that a run has many.
  const { segmentBytes } = swarm;
  const small = { ...config, logDefaults: { ...config.logDefaults, segmentBytes } };
  configs.set(key, small);
  return small;
}

function quorumSettings(nodes: number, nodeId: number): string[] {
  if (nodes === 1) return [];
  const voters = Array.from({ length: nodes }, (_, index) => `${index + 1}@host${index + 1}:9093`);
  return [
    `controller.quorum.voters=${voters.join()}`,
    `listeners=PLAINTEXT://host${nodeId}:9092,CONTROLLER://host${nodeId}:9093`,
  ];
}

export function newController(swarm: Swarm, nodeId: number, random: SeededRandom): Controller {
  return new Controller({
    nodeId,
    defaultPartitions: 1,
    defaultReplicationFactor: 1,
    deleteTopicEnable: true,
    formationFeatures: [{ name: 'metadata.version', level: metadataVersionLevel }],
    sessionTimeoutMs: swarm.nodes === 1 ? null : swarm.sessionTimeoutMs,
    leaderBalanceIntervalMs: random.chance(0.5) ? null : 2_000,
    minInsyncReplicas: 1,
    uncleanLeaderElectionEnable: false,
    checkTopicConfigs,
    checkBrokerConfigs: checkDynamicConfigs,
    listDefault,
    random: (bound) => random.below(bound),
    newUuid: () => newUuid(random),
  });
}

/** In Kafka's form; one that begins with a dash tools take for an option. */
export function newUuid(random: SeededRandom): string {
  return `u${Buffer.from(random.bytes(16)).toString('base64url').slice(1)}`;
}

/** A logger whose lines go into the trace. */
export function quietLogger(trace: Trace, who: string): Logger {
  return new LevelLogger(
    { format: 'text', level: 'warn' },
    (level, message, fields) =>
      trace.add(who, () => `logs ${level} ${message} ${JSON.stringify(fields)}`),
    () => 0,
  );
}
