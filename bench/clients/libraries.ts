/** The producers that are compared, each used as its documentation shows it, behind one interface. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Client } from '../../net/client/client.ts';

export interface Sender {
  /** Sends messages to partition 0 and resolves when all replicas in sync have them. */
  sendAll(values: readonly Buffer[]): Promise<unknown>;
  sendOne(value: Buffer): Promise<unknown>;
  close(): Promise<unknown>;
}

export const libraryNames = ['millrace/client', '@platformatic/kafka', 'kafkajs'] as const;
export type LibraryName = (typeof libraryNames)[number];

type Open = (packages: string, bootstrap: string, topic: string) => Promise<Sender>;

/** As much of the others' types as is used here; they are not among this project's packages. */
interface KafkaJs {
  readonly Kafka: new (
    options: object,
  ) => {
    producer(options: object): {
      connect(): Promise<void>;
      send(record: object): Promise<unknown>;
      disconnect(): Promise<void>;
    };
  };
  readonly logLevel: { readonly ERROR: number };
}
interface Platformatic {
  readonly Producer: new (
    options: object,
  ) => {
    send(options: object): Promise<unknown>;
    close(): Promise<void>;
  };
}

const libraries: Readonly<Record<LibraryName, Open>> = {
  async 'millrace/client'(_packages, bootstrap, topic) {
    const client = new Client({ bootstrap });
    const producer = client.producer();
    return {
      sendAll: (values) => Promise.all(values.map((value) => producer.send({ topic, value }))),
      sendOne: (value) => producer.send({ topic, value }),
      async close() {
        await producer.close();
        await client.close();
      },
    };
  },

  async kafkajs(packages, bootstrap, topic) {
    const { Kafka, logLevel } = createRequire(join(packages, 'x.js'))('kafkajs') as KafkaJs;
    const kafka = new Kafka({ clientId: 'bench', brokers: [bootstrap], logLevel: logLevel.ERROR });
    const producer = kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    return {
      sendAll: (values) =>
        producer.send({ topic, acks: -1, messages: values.map((value) => ({ value })) }),
      sendOne: (value) => producer.send({ topic, acks: -1, messages: [{ value }] }),
      close: () => producer.disconnect(),
    };
  },

  async '@platformatic/kafka'(packages, bootstrap, topic) {
    const load = createRequire(join(packages, 'x.js'));
    const { Producer } = load('@platformatic/kafka') as Platformatic;
    const producer = new Producer({ clientId: 'bench', bootstrapBrokers: [bootstrap] });
    const acks = -1;
    return {
      sendAll: (values) =>
        producer.send({ acks, messages: values.map((value) => ({ topic, value })) }),
      sendOne: (value) => producer.send({ acks, messages: [{ topic, value }] }),
      close: () => producer.close(),
    };
  },
};

export function openLibrary(
  name: LibraryName,
  packages: string,
  bootstrap: string,
  topic: string,
): Promise<Sender> {
  return libraries[name](packages, bootstrap, topic);
}
