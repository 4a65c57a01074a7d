/**
 * Apache Kafka itself as the broker under test (`npm run test:compat -- --broker kafka`): proves that the suite
 * is right, and says what Kafka does where the two differ. One node in both roles, defaults but for what a
 * single node needs.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Address, Command, Launcher, Settings } from '../harness/broker_process.ts';
import { installJava } from './peers/install.ts';

const smallMachine = ['-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
const logging = [
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server=info',
];

/**
 * A fresh launcher: it remembers the ports that it chose.
 * @param machine options of the JVM; by default a small heap, and a compiler that does not compete with the test
 */
export function kafkaLauncher(machine: readonly string[] = smallMachine): Launcher {
  let address: Address = { host: '127.0.0.1', port: 0 };
  return {
    async command(dataDir: string, port: number, settings: Settings): Promise<Command> {
      const { classPath } = await installJava();
      const [, host = '127.0.0.1'] = /^\w+:\/\/([\d.]+):/.exec(`${settings['listeners']}`) ?? [];
      address = { host, port: port === 0 ? await freePort() : port };
      const properties = join(dataDir, 'server.properties');
      const logs = join(dataDir, 'logs');
      mkdirSync(logs, { recursive: true });
      const entries = Object.entries({
        ...defaults(address.port, await freePort(), logs),
        ...settings,
      });
      writeFileSync(properties, entries.map(([key, value]) => `${key}=${value}\n`).join(''));
      const java = [...machine, `-Djava.io.tmpdir=${tmpdir()}`, ...logging, '-cp', classPath];
      if (!existsSync(join(logs, 'meta.properties'))) {
        const format = ['format', '-t', 'MkU3OEVBNTcwNTJENDM2Qk', '-c', properties];
        execFileSync('java', [...java, 'kafka.tools.StorageTool', ...format], { stdio: 'pipe' });
      }
      return { file: 'java', args: [...java, 'kafka.Kafka', properties] };
    },
    ready: (output) => (output.includes('Kafka Server started') ? address : null),
  };
}

function defaults(port: number, controllerPort: number, logs: string): Settings {
  return {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'controller.listener.names': 'CONTROLLER',
    'log.dirs': logs,
    'offsets.topic.replication.factor': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
  };
}

/** A port that the kernel gave and took back: Kafka cannot be asked which one it chose. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
