/** Rules between settings, checked when each of them is fine alone. */
import type { BrokerConfig } from './broker_config.ts';
import { isLoopback, isWildcard, type Listener } from './listeners.ts';
import type { Settings } from './settings.ts';

/** Bytes of a batch in the log that Kafka does not count to its size: offset and length. */
const logOverheadBytes = 12;

/** Records errors for settings that contradict each other, and warnings for those that will surprise somebody. */
export function crossCheck(settings: Settings, config: BrokerConfig): void {
  checkRequestMemory(settings, config);
  checkRetention(settings);
  checkInterBroker(settings, config);
  if (settings.problems.errors.length > 0) return;
  warnOfBatchSize(settings, config);
  warnOfFlushing(settings, config);
  if (config.quorum.voters.length === 0) warnOfReplication(settings, config);
  else warnOfControllers(settings, config);
  for (const [index, listener] of config.listeners.entries()) {
    warnOfListener(settings, listener, config.advertisedListeners[index] as Listener);
  }
}

function checkRequestMemory(settings: Settings, config: BrokerConfig): void {
  const { socketRequestMaxBytes, queuedMaxRequestBytes } = config;
  if (queuedMaxRequestBytes >= socketRequestMaxBytes) return;
  settings.refuse(
    'queued.max.request.bytes',
    `a request of socket.request.max.bytes=${socketRequestMaxBytes} would never fit. Allowed: -1, or at least that`,
  );
}

function warnOfBatchSize(settings: Settings, config: BrokerConfig): void {
  const { socketRequestMaxBytes, logDefaults } = config;
  const { maxMessageBytes, segmentBytes } = logDefaults;
  if (maxMessageBytes >= socketRequestMaxBytes) {
    settings.problems.warn(
      `message.max.bytes=${maxMessageBytes} can never be reached: socket.request.max.bytes=${socketRequestMaxBytes} limits the whole request.`,
    );
  }
  if (maxMessageBytes > segmentBytes + logOverheadBytes) {
    settings.problems.warn(
      `message.max.bytes=${maxMessageBytes} can never be reached: a batch must fit into a segment, log.segment.bytes=${segmentBytes}.`,
    );
  }
}

function checkRetention(settings: Settings): void {
  for (const key of ['log.retention.ms', 'log.retention.minutes', 'log.retention.hours']) {
    if (!settings.has(key) || settings.number(key) !== 0) continue;
    settings.refuse(key, 'allowed: -1 for ever, or at least 1');
  }
}

function warnOfFlushing(settings: Settings, config: BrokerConfig): void {
  if (config.durability !== 'fsync') return;
  const keys = [
    'log.flush.interval.messages',
    'log.flush.interval.ms',
    'log.flush.scheduler.interval.ms',
  ].filter((key) => settings.has(key));
  if (keys.length === 0) return;
  settings.problems.warn(
    `No effect with log.durability=fsync, which flushes every record before acks=all is answered: ${keys.join(', ')}.`,
  );
}

function warnOfReplication(settings: Settings, config: BrokerConfig): void {
  const { defaultReplicationFactor, minInsyncReplicas } = config;
  if (defaultReplicationFactor > 1) {
    settings.problems.warn(
      `default.replication.factor=${defaultReplicationFactor}, but this cluster has one broker: topics can only be created with replication factor 1.`,
    );
  }
  if (minInsyncReplicas > 1) {
    settings.problems.warn(
      `min.insync.replicas=${minInsyncReplicas}, but this cluster has one broker: producers with acks=all will be refused.`,
    );
  }
}

/** Brokers on other machines find this one by what it advertises for the listener that is for them. */
function checkInterBroker(settings: Settings, config: BrokerConfig): void {
  const { quorum, nodeId, interBrokerListenerName, advertisedListeners } = config;
  const elsewhere = quorum.voters.find(
    (voter) => voter.nodeId !== nodeId && !isLoopback(voter.host),
  );
  const own = advertisedListeners.find(({ name }) => name === interBrokerListenerName);
  if (elsewhere === undefined || own === undefined || !isLoopback(own.host)) return;
  settings.refuse(
    settings.has('advertised.listeners') ? 'advertised.listeners' : 'listeners',
    `the other brokers of the cluster would be sent to ${own.host}, and voter ${elsewhere.nodeId} is at ${elsewhere.host}. Allowed: for ${own.name} an address by which other hosts reach this one`,
  );
}

function warnOfControllers(settings: Settings, config: BrokerConfig): void {
  const { quorum, nodeId, controllerListeners } = config;
  for (const { name, host, port } of controllerListeners) {
    if (isLoopback(host)) continue;
    const where = isWildcard(host) ? 'all interfaces' : host;
    settings.problems.warn(
      `Listener ${name} on ${where}, port ${port}: everybody who can connect can change the cluster's metadata, there is no authentication yet.`,
    );
  }
  const own = quorum.voters.find((voter) => voter.nodeId === nodeId);
  const ports = controllerListeners.map(({ port }) => port);
  if (own === undefined || ports.includes(own.port) || ports.includes(0)) return;
  settings.problems.warn(
    `controller.quorum.voters sends the other voters to port ${own.port} of this node, and its listener for controllers is on ${ports.join(', ')}.`,
  );
}

function warnOfListener(settings: Settings, listener: Listener, advertised: Listener): void {
  const { name, host, port } = listener;
  if (!isLoopback(host)) {
    const where = isWildcard(host) ? 'all interfaces' : host;
    settings.problems.warn(
      `Listener ${name} on ${where}, port ${port}: everybody who can connect can read and write everything, there is no authentication yet.`,
    );
  }
  if (isWildcard(host) && !settings.has('advertised.listeners')) {
    settings.problems.warn(
      `Clients of listener ${name} are sent to ${advertised.host}:${advertised.port}. If they cannot reach that name, set advertised.listeners=${name}://<address they can reach>:${advertised.port}.`,
    );
  }
}
