/** Which brokers a run compares. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BrokerSpec } from './broker.ts';
import { kafkaSpec } from './broker_kafka.ts';

/** The checkout that this file belongs to. */
const ROOT = resolve(import.meta.dirname, '../..');

/**
 * Turns a list such as `millrace,base=/path/to/checkout,kafka,sink` into broker kinds. `NAME=DIRECTORY` is
 * Millrace as of another checkout, `millrace@N` Millrace with N shards; `millrace-fsync` is Millrace in its
 * default durability in all works, while `millrace` follows the work. Throws on an unknown name.
 */
export function brokerList(names: readonly string[]): BrokerSpec[] {
  return names.map((name) => {
    if (name === 'kafka') return kafkaSpec(join(ROOT, '.cache'));
    if (name === 'sink') return sinkSpec();
    if (name === 'millrace') return millraceSpec(name, ROOT, []);
    if (name === 'millrace-fsync') return millraceSpec(name, ROOT, ['log.durability=fsync']);
    const shards = /^millrace@([1-9]\d*)$/.exec(name)?.[1];
    if (shards !== undefined)
      return {
        ...millraceSpec(name, ROOT, [`num.shards=${shards}`]),
        shards: Number(shards),
      };
    const at = name.indexOf('=');
    if (at > 0)
      return {
        ...millraceSpec(name.slice(0, at), resolve(name.slice(at + 1)), []),
        shards: null,
      };
    throw new Error(
      `unknown broker ${name}: known are millrace, millrace@N, millrace-fsync, NAME=CHECKOUT, kafka, sink`,
    );
  });
}

/** @param overrides settings that win over those of the work */
function millraceSpec(name: string, root: string, overrides: readonly string[]): BrokerSpec {
  const script = join(root, 'tools/millrace.ts');
  return {
    name,
    can: { fetch: true, flush: true, restart: true },
    warmUpMiB: 0,
    flushedTopicConfigs: {},
    // The default of num.shards on the one CPU that the harness leaves it.
    shards: 1,
    setUp: async () => {
      if (!existsSync(script)) throw new Error(`${name}: there is no ${script}`);
      return `${root}, Node ${process.version}`;
    },
    prepare: async () => {},
    command: (place, durability) => {
      const settings = [
        `listeners=PLAINTEXT://127.0.0.1:${place.port}`,
        `log.dirs=${join(place.directory, 'data')}`,
        `log.durability=${durability}`,
        ...overrides,
      ];
      return [process.execPath, script, 'start', ...settings.flatMap((one) => ['--set', one])];
    },
  };
}

function sinkSpec(): BrokerSpec {
  return {
    name: 'sink',
    can: { fetch: false, flush: false, restart: false },
    warmUpMiB: 0,
    flushedTopicConfigs: {},
    shards: null,
    setUp: async () => 'one thread, no features',
    prepare: async () => {},
    command: (place) => [
      process.execPath,
      join(import.meta.dirname, 'sink.ts'),
      String(place.port),
      join(place.directory, 'data'),
    ],
  };
}
