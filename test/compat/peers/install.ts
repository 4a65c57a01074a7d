/**
 * Fetches and builds other people's clients into .cache/compat, each from its own registry with its ordinary
 * tool. What is already there is not fetched again. Run by hand or by CI (`node test/compat/peers/install.ts`) it
 * installs all of them; the tests call the functions, which then cost next to nothing.
 */
import { copyFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fetchWith, need, once, run } from './fetch.ts';

const clients = join(dirname(import.meta.dirname), 'clients');
const cache = join(dirname(dirname(dirname(import.meta.dirname))), '.cache', 'compat');

/** kcat, from the distribution. */
export async function installKcat(): Promise<void> {
  await need('kcat', ['-V'], ['kcat']);
}

/** Kafka 4.4.0 with its client, its tools and the peer program; answers with the class path for `java -cp`. */
export function installJava(): Promise<{ classPath: string }> {
  return installJavaProgram('java', 'Peer.java');
}

/** Kafka's client 2.1.0 with its peer program. */
export function installOldJava(): Promise<{ classPath: string }> {
  return installJavaProgram('java_old', 'OldPeer.java');
}

async function installJavaProgram(name: string, program: string): Promise<{ classPath: string }> {
  const dir = join(cache, name);
  const [libraries, classes] = [join(dir, 'lib'), join(dir, 'classes')];
  const source = join(clients, name);
  const sources = ['pom.xml', program].map((file) => join(source, file));
  await once(dir, sources, async () => {
    await need('javac', ['-version'], ['default-jdk-headless']);
    await need('mvn', ['--version'], ['maven']);
    const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${libraries}`];
    await fetchWith('mvn', ['-B', '-q', ...copy, '-DincludeScope=runtime'], source);
    const compile = ['-cp', join(libraries, '*'), '-d', classes, program];
    const { code, output } = await run('javac', compile, source);
    if (code !== 0) throw new Error(`javac failed:\n${output}`);
  });
  return { classPath: `${classes}:${join(libraries, '*')}` };
}

/** franz-go; answers with the path of the built program. */
export async function installFranz(): Promise<{ program: string }> {
  const dir = join(cache, 'franz');
  const source = join(clients, 'franz');
  const program = join(dir, 'peer');
  const sources = ['go.mod', 'go.sum', 'main.go'].map((name) => join(source, name));
  await once(dir, sources, async () => {
    await need('go', ['version'], []);
    await fetchWith('go', ['build', '-buildvcs=false', '-o', program, '.'], source, {
      CGO_ENABLED: '0',
    });
  });
  return { program };
}

/**
 * franz-go's own tests of its client, built from the module as the registry has it; answers with the test program and
 * the folder in which it expects to run.
 */
export async function installFranzSuite(): Promise<{ program: string; dir: string }> {
  const dir = join(cache, 'franz_suite');
  const source = join(clients, 'franz');
  const module = join(dir, 'module');
  const program = join(dir, 'kgo.test');
  const sources = ['go.mod', 'go.sum'].map((name) => join(source, name));
  await once(dir, sources, async () => {
    await need('go', ['version'], []);
    const list = ['list', '-m', '-f', '{{.Dir}}', 'github.com/twmb/franz-go'];
    await fetchWith('go', ['mod', 'download'], source);
    const { code, output } = await run('go', list, source);
    if (code !== 0) throw new Error(`go list failed:\n${output}`);
    // A copy, which can be written: inside the module cache Go builds no module for itself.
    const copy = await run('cp', ['-r', '--no-preserve=mode', output.trim(), module], dir);
    if (copy.code !== 0) throw new Error(`cp failed:\n${copy.output}`);
    await fetchWith('go', ['test', '-buildvcs=false', '-c', '-o', program, './pkg/kgo'], module, {
      CGO_ENABLED: '0',
    });
  });
  return { program, dir: join(module, 'pkg', 'kgo') };
}

/** The programs of clients/go, and what each is built with. */
const goPrograms = {
  sarama: { folder: 'sarama', tags: '', cgo: false },
  segmentio: { folder: 'segmentio', tags: '', cgo: false },
  confluent: { folder: 'confluent', tags: '', cgo: true },
  confluent_old: { folder: 'confluent', tags: 'librdkafka1', cgo: true },
} as const;

/** One of the programs of clients/go; answers with the path of the built program. */
export async function installGo(name: keyof typeof goPrograms): Promise<{ program: string }> {
  const { folder, tags, cgo } = goPrograms[name];
  const dir = join(cache, name);
  const source = join(clients, 'go');
  const program = join(dir, 'peer');
  const files = ['go.mod', 'go.sum', 'contract/contract.go', `${folder}/main.go`];
  if (folder === 'confluent') files.push('confluent/current.go', 'confluent/old.go');
  const sources = files.map((file) => join(source, file));
  await once(dir, sources, async () => {
    await need('go', ['version'], []);
    // The librdkafka that comes with the module is a static library, which cgo links.
    if (cgo) await need('gcc', ['--version'], ['gcc', 'libc6-dev']);
    const build = ['build', '-buildvcs=false', '-tags', tags, '-o', program, `./${folder}`];
    await fetchWith('go', build, source, { CGO_ENABLED: cgo ? '1' : '0' });
  });
  return { program };
}

/** rdkafka, with the librdkafka that its crate builds; answers with the path of the built program. */
export async function installRust(): Promise<{ program: string }> {
  const dir = join(cache, 'rust');
  const source = join(clients, 'rust');
  const target = join(dir, 'target');
  const sources = ['Cargo.toml', 'Cargo.lock', 'src/main.rs'].map((name) => join(source, name));
  await once(dir, sources, async () => {
    await need('cargo', ['--version'], []);
    await need('cmake', ['--version'], ['cmake']);
    await need('g++', ['--version'], ['g++']);
    await fetchWith('cargo', ['build', '--locked'], source, { CARGO_TARGET_DIR: target });
  });
  return { program: join(target, 'debug', 'compat-rust-client') };
}

/** KafkaJS and @platformatic/kafka; answers with the path of the peer program. */
export async function installNode(name: 'kafkajs' | 'platformatic'): Promise<{ program: string }> {
  nodePackages ??= installNodePackages();
  return { program: join(await nodePackages, `${name}.js`) };
}

let nodePackages: Promise<string> | null = null;

/** The programs stand beside their packages, because that is where Node looks for these. */
async function installNodePackages(): Promise<string> {
  const dir = join(cache, 'node');
  const source = join(clients, 'node');
  const manifest = ['package.json', 'package-lock.json'];
  const programs = ['contract.js', 'kafkajs.js', 'platformatic.js'];
  const copy = (name: string): void => copyFileSync(join(source, name), join(dir, name));
  const sources = manifest.map((name) => join(source, name));
  await once(dir, sources, async () => {
    manifest.forEach(copy);
    await fetchWith('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], dir);
  });
  programs.forEach(copy);
  return dir;
}

/** confluent-kafka; answers with the paths of its Python and of the peer program. */
export async function installPython(): Promise<{ python: string; program: string }> {
  return { python: await installVenv('python'), program: join(clients, 'python', 'peer.py') };
}

/** aiokafka and kafka-python, which share an environment. */
export async function installPurePython(
  name: 'aiokafka' | 'kafka_python',
): Promise<{ python: string; program: string }> {
  purePython ??= installVenv('python_pure');
  const program = join(clients, 'python_pure', `${name}_peer.py`);
  return { python: await purePython, program };
}

let purePython: Promise<string> | null = null;

/** What clients/`name`/requirements.txt lists, in a virtual environment of its own; answers with the path of its Python. */
async function installVenv(name: string): Promise<string> {
  const dir = join(cache, name);
  const requirements = join(clients, name, 'requirements.txt');
  const python = join(dir, 'venv', 'bin', 'python');
  await once(dir, [requirements], async () => {
    await need('python3', ['--version'], ['python3', 'python3-venv']);
    await fetchWith('python3', ['-m', 'venv', join(dir, 'venv')], dir);
    await fetchWith(python, ['-m', 'pip', 'install', '-q', '-r', requirements], dir);
  });
  return python;
}

/** Lanes run beside each other; what would get in each other's way, such as two Mavens, is in one lane. */
const lanes: readonly (readonly [name: string, install: () => Promise<unknown>][])[] = [
  [
    ['kcat', installKcat],
    ['java', installJava],
    ['java 2.1', installOldJava],
  ],
  [
    ['franz-go', installFranz],
    ["franz-go's tests", installFranzSuite],
    ['sarama', () => installGo('sarama')],
    ['kafka-go', () => installGo('segmentio')],
    ['confluent-kafka-go', () => installGo('confluent')],
    ['confluent-kafka-go 1', () => installGo('confluent_old')],
  ],
  [
    ['confluent-kafka for Python', installPython],
    ['aiokafka, kafka-python', () => installPurePython('aiokafka')],
    ['kafkajs, @platformatic/kafka', () => installNode('kafkajs')],
    ['rdkafka', installRust],
  ],
];

/** Installs one client after another, the rest even when one fails; returns how many failed. */
async function installLane(lane: (typeof lanes)[number]): Promise<number> {
  let failed = 0;
  for (const [name, install] of lane) {
    const startedMs = performance.now();
    const problem = await install().then(
      () => null,
      (error: Error) => error.message,
    );
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    process.stdout.write(`${name}: ${problem === null ? '' : 'FAILED after '}${seconds} s\n`);
    if (problem === null) continue;
    failed += 1;
    process.stderr.write(`${problem}\n`);
  }
  return failed;
}

if (import.meta.main) {
  const failures = await Promise.all(lanes.map(installLane));
  process.exitCode = failures.some((count) => count > 0) ? 1 : 0;
}
