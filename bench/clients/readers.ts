/** The consumers that are compared: each as a member of a group of its own, from the beginning, message by message. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Client } from '../../net/client/client.ts';
import type { LibraryName } from './libraries.ts';

/** Called with each value, in order, until it returns false. */
export type Visit = (value: Uint8Array) => boolean;

type Read = (packages: string, bootstrap: string, topic: string, visit: Visit) => Promise<void>;

/** As much of the others' types as is used here. */
interface KafkaJs {
  readonly Kafka: new (
    options: object,
  ) => {
    consumer(options: object): {
      connect(): Promise<void>;
      subscribe(options: object): Promise<void>;
      run(options: {
        eachMessage(given: { message: { value: Uint8Array } }): Promise<void>;
      }): Promise<void>;
    };
  };
  readonly logLevel: { readonly ERROR: number };
}
interface Platformatic {
  readonly Consumer: new (
    options: object,
  ) => {
    consume(options: object): Promise<{
      on(event: 'data', take: (message: { value: Uint8Array }) => void): void;
    }>;
  };
}

/** The process ends when its figures are printed; nothing here waits for consumers to leave their group. */
const readers: Readonly<Record<LibraryName, Read>> = {
  async 'millrace/client'(_packages, bootstrap, topic, visit) {
    await using client = new Client({ bootstrap });
    await using consumer = client.consumer({ topics: [topic], group: topic, from: 'earliest' });
    for await (const { value } of consumer) if (value !== null && !visit(value)) return;
  },

  async kafkajs(packages, bootstrap, topic, visit) {
    const { Kafka, logLevel } = createRequire(join(packages, 'x.js'))('kafkajs') as KafkaJs;
    const kafka = new Kafka({ clientId: 'bench', brokers: [bootstrap], logLevel: logLevel.ERROR });
    const consumer = kafka.consumer({ groupId: topic });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      const eachMessage = async ({
        message,
      }: {
        message: { value: Uint8Array };
      }): Promise<void> => {
        if (!visit(message.value)) resolve();
      };
      consumer.run({ eachMessage }).catch(reject);
    });
  },

  async '@platformatic/kafka'(packages, bootstrap, topic, visit) {
    const load = createRequire(join(packages, 'x.js'));
    const { Consumer } = load('@platformatic/kafka') as Platformatic;
    const consumer = new Consumer({
      ...{ clientId: 'bench', bootstrapBrokers: [bootstrap], groupId: topic },
    });
    const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: true });
    await new Promise<void>((resolve) => {
      stream.on('data', ({ value }) => {
        if (!visit(value)) resolve();
      });
    });
  },
};

export function readWith(
  name: LibraryName,
  packages: string,
  bootstrap: string,
  topic: string,
  visit: Visit,
): Promise<void> {
  return readers[name](packages, bootstrap, topic, visit);
}
