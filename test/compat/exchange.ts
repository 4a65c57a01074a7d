/** What the client tests have in common: a broker, the clients, and a topic written in every mode. */
import { type BrokerOptions, BrokerProcess, millrace } from '../harness/broker_process.ts';
import { dataset, type Sent } from './dataset.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { consolePeer } from './peers/console_peer.ts';
import { kcatPeer } from './peers/kcat_peer.ts';
import { ownPeer } from './peers/own_peer.ts';
import { type Mode, modeName, modes, type Peer, type Wanted } from './peers/peer.ts';
import {
  franzPeer,
  goPeer,
  javaPeer,
  nodePeer,
  oldJavaPeer,
  purePythonPeer,
  pythonPeer,
  rustPeer,
} from './peers/program_peer.ts';

type Start = (bootstrap: string) => Promise<Peer>;

export type PeerName = 'kcat' | 'java' | 'console' | 'franz' | 'python' | 'own';

/** The clients that exchange records each with each, by the names under which the tests know them. */
export const peers: Readonly<Record<PeerName, Start>> = {
  kcat: kcatPeer,
  java: javaPeer,
  console: consolePeer,
  franz: franzPeer,
  python: pythonPeer,
  own: ownPeer,
};

/** Whether the suite runs against Kafka itself (`--broker kafka`), to prove that it is right. */
export const isKafka: boolean = process.env['MILLRACE_COMPAT_BROKER'] === 'kafka';

export type FurtherName =
  | 'aiokafka'
  | 'confluent'
  | 'confluent_old'
  | 'java_old'
  | 'kafka_python'
  | 'kafkajs'
  | 'platformatic'
  | 'rdkafka'
  | 'sarama'
  | 'segmentio';

/** The clients that exchange records with two of those above. */
export const furtherPeers: Readonly<Record<FurtherName, Start>> = {
  aiokafka: (bootstrap) => purePythonPeer('aiokafka', bootstrap, { noNullRecords: true }),
  confluent: (bootstrap) => goPeer('confluent', bootstrap),
  confluent_old: (bootstrap) => goPeer('confluent_old', bootstrap),
  java_old: oldJavaPeer,
  kafka_python: (bootstrap) =>
    purePythonPeer('kafka_python', bootstrap, { noNullHeaders: true, noNullRecords: true }),
  kafkajs: (bootstrap) => nodePeer('kafkajs', bootstrap, { noNullHeaders: true }),
  platformatic: (bootstrap) => nodePeer('platformatic', bootstrap),
  rdkafka: rustPeer,
  sarama: (bootstrap) => goPeer('sarama', bootstrap),
  segmentio: (bootstrap) =>
    goPeer('segmentio', bootstrap, { notIdempotent: true, readsEmptyAsNull: true }),
};

/** Starts the broker under test: ours, or Kafka's. */
export function startBroker(options: BrokerOptions = {}): Promise<BrokerProcess> {
  return BrokerProcess.start({ launcher: isKafka ? kafkaLauncher() : millrace, ...options });
}

/**
 * Creates topics with the peer itself and writes a data set in each of the 20 modes: to the partitions of one topic,
 * or to a topic each if the client will not be told the partition. Returns what was sent where.
 */
export function produceAllModes(peer: Peer, prefix: string, creator: Peer = peer): Promise<Sent[]> {
  return produceModes(peer, prefix, modes, creator);
}

/** As `produceAllModes`, in the given modes; those that the client does not have are left out. */
export async function produceModes(
  peer: Peer,
  prefix: string,
  wanted: readonly Mode[],
  creator: Peer = peer,
): Promise<Sent[]> {
  const modes = wanted.filter(
    ({ idempotent }) => !(idempotent && peer.limits.notIdempotent === true),
  );
  const onePartition = peer.limits.onePartition === true;
  if (!onePartition) await creator.create(prefix, modes.length);
  else for (const index of modes.keys()) await creator.create(`${prefix}-${index}`, 1);
  const sent: Sent[] = [];
  for (const [index, mode] of modes.entries()) {
    const topic = onePartition ? `${prefix}-${index}` : prefix;
    const partition = onePartition ? 0 : index;
    const records = dataset(index, peer.limits);
    const beforeMs = Date.now();
    await peer.produce(topic, partition, mode, records);
    const isStamped = peer.limits.stampsItself === true;
    const stampedBetween = isStamped ? ([beforeMs, Date.now()] as const) : null;
    const what = `${modeName(mode)}, by ${peer.name}`;
    sent.push({ topic, partition, records, what, stampedBetween });
  }
  return sent;
}

/** All that was sent, as something to read. */
export function wantedOf(sent: readonly Sent[]): Wanted[] {
  return sent.map(({ topic, partition, records }) => [topic, partition, records.length]);
}
