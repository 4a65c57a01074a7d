/** What the producers and consumers are made to do. */

export interface ProducerWork {
  readonly name: string;
  /** Of a value; there are no keys. */
  readonly bytes: number;
  /** Messages that are given to the library at once. */
  readonly group: number;
  /** Groups that are not acknowledged yet. */
  readonly lanes: number;
  /** Groups in all. */
  readonly count: number;
}

export const producerWorks: readonly ProducerWork[] = [
  { name: 'produce 100 B', bytes: 100, group: 1_000, lanes: 4, count: 600 },
  { name: 'produce 1 KB', bytes: 1_000, group: 100, lanes: 4, count: 1_500 },
  { name: 'one message at a time', bytes: 100, group: 1, lanes: 1, count: 3_000 },
];

export interface ConsumerWork {
  readonly name: string;
  /** Of a value. */
  readonly bytes: number;
  /** Messages in the topic; the first quarter does not count. */
  readonly count: number;
}

export const consumerWorks: readonly ConsumerWork[] = [
  { name: 'consume 100 B', bytes: 100, count: 800_000 },
  { name: 'consume 1 KB', bytes: 1_000, count: 200_000 },
];
