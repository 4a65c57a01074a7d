/**
 * Creates and deletes topics until its connection breaks, again and again, and remembers what was acknowledged: the
 * metadata's side of tests that pull the rug from under a broker.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { Client } from './client.ts';
import { ConnectionLostError, type Endpoint } from './connection.ts';

/** Topics of one call, at most. */
const topicsMax = 3;

type State = 'creating' | 'created' | 'deleting' | 'deleted';

export class TopicChurn {
  readonly #endpoint: () => Endpoint;
  /** By name; `id` is null until the creation was acknowledged. */
  readonly #topics = new Map<string, { state: State; id: string | null }>();
  readonly #producerIds = new Set<number>();

  constructor(endpoint: () => Endpoint) {
    this.#endpoint = endpoint;
  }

  /** What was acknowledged so far, for a report. */
  get counts(): string {
    const states = [...this.#topics.values()].map(({ state }) => state);
    const count = (state: State): number => states.filter((one) => one === state).length;
    return `${count('created')} topics created and ${count('deleted')} deleted`;
  }

  /** Creates a few topics, deletes every other one, and takes a producer id between them. */
  async run(): Promise<void> {
    try {
      const client = await Client.connect(this.#endpoint(), 'churn');
      for (let left = topicsMax; left > 0; left -= 1) await this.#once(client);
      client.close();
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) throw error;
    }
  }

  /** Throws unless all that was acknowledged is so, and what nobody asked for is not. */
  async check(): Promise<void> {
    const client = await Client.connect(this.#endpoint(), 'churn');
    const { topics } = await client.metadata();
    const ids = new Map(topics.map(({ name, topicId }) => [name, topicId]));
    for (const [name, { state, id }] of this.#topics) {
      if (state === 'created') assert.equal(ids.get(name), id, `${name} was created`);
      if (state === 'deleted') assert.equal(ids.get(name), undefined, `${name} was deleted`);
    }
    await this.#takeProducerId(client);
    client.close();
  }

  async #once(client: Client): Promise<void> {
    const name = `churn-${this.#topics.size}`;
    const topic: { state: State; id: string | null } = { state: 'creating', id: null };
    this.#topics.set(name, topic);
    const id = await client.createTopic(name, 2);
    topic.id = id;
    topic.state = 'created';
    await this.#takeProducerId(client);
    if (this.#topics.size % 2 === 0) return;
    topic.state = 'deleting';
    const answer = await client.request('DeleteTopics', {
      topics: [{ name: null, topicId: id }],
      timeoutMs: 30_000,
    });
    assert.equal(answer.responses[0]?.errorCode, ErrorCode.NONE, `delete ${name}`);
    topic.state = 'deleted';
  }

  async #takeProducerId(client: Client): Promise<void> {
    const { producerId } = await client.initProducerId();
    assert(!this.#producerIds.has(producerId), `producer id ${producerId} was handed out twice`);
    this.#producerIds.add(producerId);
  }
}
