/**
 * Several brokers as processes of their own that form a cluster: each broker and controller in one, ids from 1.
 *
 * Ports are the kernel's, chosen before the processes start, since the voters have to know each other's. With `links` the
 * brokers know each other by the ports of proxies (see `Links`), and tests connect past those.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import {
  BrokerProcess,
  type Exit,
  type Launcher,
  type Settings,
  testShards,
} from './broker_process.ts';
import { Client } from './client.ts';
import { ConnectionLostError, type Endpoint } from './connection.ts';
import { Links } from './links.ts';
import { ownLoopback } from './loopback.ts';

/** A broker that is stopped or gone must not hold up who asks around. */
const askTimeoutMs = 1_000;
const lookAgainMs = 20;
/** An election takes a moment; a quorum that is without a leader for so long has lost its way. */
const quorumPatienceMs = 60_000;

export interface ClusterOptions {
  readonly brokers?: number;
  readonly settings?: Settings;
  /** A directory of the caller's, with one below for each broker; without it they are temporary ones. */
  readonly dataDir?: string;
  readonly links?: boolean;
  /** Called once for each broker; without it the brokers are Millrace's. */
  readonly launcher?: () => Launcher;
}

/** Ports of one broker: its own, and those that others are told. */
interface Place {
  readonly id: number;
  readonly port: number;
  readonly controllerPort: number;
  readonly told: number;
  readonly toldController: number;
}

export interface QuorumVoter {
  readonly id: number;
  readonly directoryId: string;
}

export interface Quorum {
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly voters: readonly QuorumVoter[];
  readonly observers: readonly QuorumVoter[];
}

export class Cluster {
  readonly links: Links | null;
  readonly #options: ClusterOptions;
  /** Broker `id` is at `id - 1`. */
  readonly #brokers: BrokerProcess[] = [];
  readonly #places: Place[];
  readonly #voters: string;
  readonly #paused = new Set<number>();

  private constructor(options: ClusterOptions, links: Links | null, places: Place[]) {
    this.#options = options;
    this.links = links;
    this.#places = places;
    this.#voters = places
      .map(({ id, toldController }) => `${id}@${ownLoopback}:${toldController}`)
      .join(',');
  }

  /** Resolves once all of them serve. */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const { brokers = 3 } = options;
    const links = options.links === true ? new Links() : null;
    const ports = await freePorts(brokers * 2);
    const places: Place[] = [];
    for (let id = 1; id <= brokers; id += 1)
      places.push(await place(id, ports[id - 1]!, ports[brokers + id - 1]!, links));
    const cluster = new Cluster(options, links, places);
    const started = await Promise.allSettled(places.map((one) => cluster.#launch(one)));
    const failed = started.find((one) => one.status === 'rejected');
    for (const one of started) if (one.status === 'fulfilled') cluster.#brokers.push(one.value);
    if (failed === undefined) return cluster;
    await cluster.dispose();
    throw failed.reason;
  }

  /** One broker more, which the configuration of none names as a voter. Returns its id. */
  async add(): Promise<number> {
    const id = this.#places.length + 1;
    const [port, controllerPort] = await freePorts(2);
    const added = await place(id, port!, controllerPort!, this.links);
    this.#brokers.push(await this.#launch(added));
    this.#places.push(added);
    return id;
  }

  #launch({ id, port, controllerPort, told, toldController }: Place): Promise<BrokerProcess> {
    const { settings = {}, dataDir, launcher } = this.#options;
    const directory = dataDir === undefined ? undefined : join(dataDir, String(id));
    if (directory !== undefined) mkdirSync(directory, { recursive: true });
    return BrokerProcess.start({
      port,
      ...(launcher === undefined ? {} : { launcher: launcher() }),
      ...(directory === undefined ? {} : { dataDir: directory }),
      settings: {
        'node.id': id,
        listeners: `PLAINTEXT://${ownLoopback}:${port},CONTROLLER://${ownLoopback}:${controllerPort}`,
        'advertised.listeners': `PLAINTEXT://${ownLoopback}:${told},CONTROLLER://${ownLoopback}:${toldController}`,
        'controller.listener.names': 'CONTROLLER',
        'controller.quorum.voters': this.#voters,
        ...(launcher === undefined ? testShards() : {}),
        ...settings,
      },
    });
  }

  /** The addresses of all brokers, as clients take them. */
  get bootstrap(): string {
    return this.#places.map(({ port }) => `${ownLoopback}:${port}`).join(',');
  }

  get brokers(): readonly BrokerProcess[] {
    return this.#brokers;
  }

  get ids(): number[] {
    return this.#brokers.map((_, k) => k + 1);
  }

  /** Where broker `id` takes what goes to controllers. */
  controllerEndpoint(id: number): Endpoint & { readonly name: string } {
    return { name: 'CONTROLLER', host: ownLoopback, port: this.#places[id - 1]!.toldController };
  }

  broker(id: number): BrokerProcess {
    const broker = this.#brokers[id - 1];
    assert(broker !== undefined, `there is no broker ${id}`);
    return broker;
  }

  /** Runs, and was not stopped by a signal. */
  isUp(id: number): boolean {
    return this.broker(id).isRunning && !this.#paused.has(id);
  }

  /** A client of the broker. */
  client(id: number): Promise<Client> {
    return Client.connect(this.broker(id));
  }

  /** kill -9. */
  async kill(id: number): Promise<void> {
    const killed = this.broker(id).kill();
    this.links?.down(id);
    await killed;
  }

  /** SIGTERM. Others cannot connect to it from now on. */
  async stop(id: number): Promise<Exit> {
    const stopped = this.broker(id).stop();
    void stopped.then(
      () => this.links?.down(id),
      () => {},
    );
    return await stopped;
  }

  async restart(id: number): Promise<void> {
    await this.links?.up(id);
    await this.broker(id).restart();
  }

  /** SIGSTOP: the process stays, and is silent. */
  pause(id: number): void {
    process.kill(this.broker(id).pid, 'SIGSTOP');
    this.#paused.add(id);
  }

  /** SIGCONT. */
  resume(id: number): void {
    this.#paused.delete(id);
    process.kill(this.broker(id).pid, 'SIGCONT');
  }

  /** The leader of the metadata quorum. */
  async controller(): Promise<number> {
    return (await this.quorum()).leaderId;
  }

  /**
   * The metadata quorum as its leader tells it, as soon as one of the brokers that run says that it leads. Throws when
   * none does for a minute.
   */
  async quorum(): Promise<Quorum> {
    const deadline = performance.now() + quorumPatienceMs;
    for (;;) {
      let found: Quorum | null = null;
      for (const id of this.ids.filter((one) => this.isUp(one))) {
        const said = await askController({
          host: ownLoopback,
          port: this.#places[id - 1]!.controllerPort,
        });
        if (said !== null && said.leaderEpoch > (found?.leaderEpoch ?? -1)) found = said;
      }
      if (found !== null && this.isUp(found.leaderId)) return found;
      assert(performance.now() < deadline, `no broker leads the quorum: ${JSON.stringify(found)}`);
      await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
    }
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#brokers.map((broker) => broker.dispose()));
    this.links?.close();
  }
}

async function place(
  id: number,
  port: number,
  controllerPort: number,
  links: Links | null,
): Promise<Place> {
  const told = links === null ? port : await links.add(id, port);
  const toldController = links === null ? controllerPort : await links.add(id, controllerPort);
  return { id, port, controllerPort, told, toldController };
}

/** The metadata quorum, if this node leads it; null otherwise. */
async function askController(endpoint: Endpoint): Promise<Quorum | null> {
  let client: Client | null = null;
  try {
    client = await Client.connect(endpoint, 'test', askTimeoutMs);
    const { errorCode, topics } = await client.request(
      'DescribeQuorum',
      { topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }] },
      askTimeoutMs,
    );
    const partition = topics[0]?.partitions[0];
    if (errorCode !== ErrorCode.NONE || partition?.errorCode !== ErrorCode.NONE) return null;
    const { leaderId, leaderEpoch, currentVoters, observers } = partition;
    return { leaderId, leaderEpoch, voters: ids(currentVoters), observers: ids(observers) };
  } catch (error) {
    if (error instanceof ConnectionLostError) return null;
    throw error;
  } finally {
    client?.close();
  }
}

function ids(states: readonly { replicaId: number; replicaDirectoryId: string }[]): QuorumVoter[] {
  return states.map(({ replicaId, replicaDirectoryId }) => ({
    id: replicaId,
    directoryId: replicaDirectoryId,
  }));
}

/** Ports that nobody listens on now. All are taken at the same time, so that they are different ones. */
export async function freePorts(count: number, host: string = ownLoopback): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject);
          server.listen(0, host, () => {
            const address = server.address();
            assert(address !== null && typeof address === 'object');
            resolve(address.port);
          });
        }),
    ),
  );
  await Promise.all(
    servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
  );
  return ports;
}
