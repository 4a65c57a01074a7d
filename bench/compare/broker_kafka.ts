/**
 * Apache Kafka as the peer: its jars from Maven Central, KRaft combined mode, the JVM options of its own
 * start scripts, all settings at their defaults but those that a single node must have.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrokerSpec, Place } from './broker.ts';
import { outputOf, run } from './children.ts';

const VERSION = '4.4.0';
/** The logging back end that Kafka's release ships; without one it would log nothing, even on failure. */
const LOG4J_VERSION = '2.25.5';
const DOWNLOAD_TIMEOUT_MS = 540_000;

/** As in bin/kafka-run-class.sh and bin/kafka-server-start.sh of the release, without the GC log. */
const JVM_OPTIONS = [
  '-Xmx1G',
  '-Xms1G',
  '-server',
  '-XX:+UseG1GC',
  '-XX:MaxGCPauseMillis=20',
  '-XX:InitiatingHeapOccupancyPercent=35',
  '-XX:+ExplicitGCInvokesConcurrent',
  '-Djava.awt.headless=true',
];

export function kafkaSpec(cache: string): BrokerSpec {
  const home = join(cache, `kafka-${VERSION}`);
  const java = (options: readonly string[], main: string, ...args: string[]): string[] => [
    'java',
    ...options,
    `-Dlog4j2.configurationFile=${join(home, 'log4j2.properties')}`,
    '-cp',
    join(home, 'libs/*'),
    main,
    ...args,
  ];
  return {
    name: 'kafka',
    can: { fetch: true, flush: true, restart: true },
    warmUpMiB: 1_024,
    shards: null,
    flushedTopicConfigs: { 'flush.messages': '1' },
    setUp: async () => {
      if (!existsSync(home)) await download(cache, home);
      const version = await outputOf(['java', '--version'], { timeoutMs: 30_000 });
      return `${VERSION}, ${version.split('\n')[0]}`;
    },
    prepare: async (place) => {
      const properties = join(place.directory, 'server.properties');
      writeFileSync(properties, serverProperties(place));
      const cluster = Buffer.alloc(16, 'millrace-bench').toString('base64url');
      const format = ['format', '--config', properties, '--cluster-id', cluster, '--standalone'];
      await run(java([], 'kafka.tools.StorageTool', ...format), { timeoutMs: 60_000 });
    },
    command: (place) =>
      java(JVM_OPTIONS, 'kafka.Kafka', join(place.directory, 'server.properties')),
  };
}

/** What config/server.properties of the release sets for one combined node, and nothing else. */
function serverProperties(place: Place): string {
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.bootstrap.servers': `127.0.0.1:${place.secondPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${place.port},CONTROLLER://127.0.0.1:${place.secondPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${place.port},CONTROLLER://127.0.0.1:${place.secondPort}`,
    'inter.broker.listener.name': 'PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    'log.dirs': join(place.directory, 'data'),
    'offsets.topic.replication.factor': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
  };
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

async function download(cache: string, home: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const building = mkdtempSync(join(cache, 'kafka-part-'));
  try {
    writeFileSync(join(building, 'pom.xml'), pom());
    writeFileSync(join(building, 'log4j2.properties'), LOG4J_PROPERTIES);
    const goal = [
      'dependency:copy-dependencies',
      '-DoutputDirectory=libs',
      '-DincludeScope=runtime',
    ];
    await run(['mvn', '-q', '-B', ...goal], { timeoutMs: DOWNLOAD_TIMEOUT_MS, cwd: building });
    renameSync(building, home);
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

function pom(): string {
  const dependency = (group: string, artifact: string, version: string): string =>
    `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace.bench</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    ${dependency('org.apache.kafka', 'kafka_2.13', VERSION)}
    ${dependency('org.apache.kafka', 'kafka-tools', VERSION)}
    ${dependency('org.apache.logging.log4j', 'log4j-slf4j-impl', LOG4J_VERSION)}
  </dependencies>
</project>
`;
}

/** Warnings only, to standard error: cheaper than the release's own files at INFO. */
const LOG4J_PROPERTIES = `rootLogger.level = WARN
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c %m%n
`;
