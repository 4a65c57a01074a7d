/**
 * What goes wrong, as the client's users see it: one class, with a code for programs, whether trying again may help, and a
 * remedy for people. Codes are Kafka's names where a broker said so, and the client's own below otherwise.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorInfo } from '../protocol/errors.ts';

/** Codes that no broker sends. */
export const ClientCode = {
  /** No connection could be made. Whatever was to be sent has not been. */
  BROKER_UNREACHABLE: 'BROKER_UNREACHABLE',
  /** The connection broke: what was sent may or may not have been carried out. */
  CONNECTION_LOST: 'CONNECTION_LOST',
  /** No answer in time: what was sent may or may not have been carried out. */
  TIMED_OUT: 'TIMED_OUT',
  /** Something answers there, but not in Kafka's protocol. */
  NOT_KAFKA: 'NOT_KAFKA',
  /** A TLS listener, which was addressed in plain text. */
  TLS_PORT: 'TLS_PORT',
  /** The client, producer or consumer has been closed. */
  CLOSED: 'CLOSED',
  /** What the caller passed cannot be. */
  INVALID_ARGUMENT: 'INVALID_ARGUMENT',
  /** What a consumer has read is not in the log any more (KIP-320), and `from: 'fail'` leaves it to the reader what to do. */
  LOG_TRUNCATED: 'LOG_TRUNCATED',
  /** A serializer or deserializer threw; `cause` has what. */
  SERIALIZATION_FAILED: 'SERIALIZATION_FAILED',
} as const;
export type ClientCode = (typeof ClientCode)[keyof typeof ClientCode];

const retriableCodes: ReadonlySet<string> = new Set([
  ClientCode.BROKER_UNREACHABLE,
  ClientCode.CONNECTION_LOST,
  ClientCode.TIMED_OUT,
]);

/** What people can do about it, by code. */
const remedies: Readonly<Record<string, string>> = {
  BROKER_UNREACHABLE:
    'Check that the broker runs and that host and port are those of its listener (`millrace start` listens on 9092).',
  NOT_KAFKA: 'Check the port: it belongs to another service.',
  TLS_PORT:
    "Use TLS (`tls: true` in the client's options, `--tls` on the command line), or the port of the broker's PLAINTEXT listener.",
  CLOSED: 'Make a new one; what is closed stays closed.',
  UNKNOWN_TOPIC_OR_PARTITION:
    'Check the name, or create the topic: `millrace topic create <name>`, or `admin.createTopic(name)`.',
  INVALID_TOPIC_EXCEPTION: 'Names have 1 to 249 of the characters a-z, A-Z, 0-9, ".", "_" and "-".',
  MESSAGE_TOO_LARGE:
    "Send smaller messages, or raise the topic's max.message.bytes and the client's `maxRequestBytes`.",
  RECORD_LIST_TOO_LARGE: "Lower the producer's `batchBytes`, or raise the topic's segment.bytes.",
  NOT_ENOUGH_REPLICAS:
    'Bring back the brokers that are down, or lower min.insync.replicas of the topic.',
  INVALID_REPLICATION_FACTOR: 'Ask for at most as many replicas as there are brokers.',
  INVALID_CONFIG:
    'All settings with their values: `millrace config describe topic|broker <name> --all`.',
  TOPIC_ALREADY_EXISTS:
    'Choose another name, or use the topic that there is (`ifNotExists: true`, `--if-not-exists`).',
  UNSUPPORTED_VERSION: 'The broker is too old or too new for this request: upgrade the older side.',
  OFFSET_OUT_OF_RANGE: 'Seek to an offset between the earliest and the latest one.',
  INVALID_RECORD: 'Topics with cleanup.policy=compact take no message without a key.',
  TOPIC_AUTHORIZATION_FAILED: 'Ask the operator for rights on the topic.',
  GROUP_AUTHORIZATION_FAILED: 'Ask the operator for rights on the group.',
  CLUSTER_AUTHORIZATION_FAILED: 'Ask the operator for rights on the cluster.',
  NON_EMPTY_GROUP: 'Stop the consumers of the group first.',
  GROUP_ID_NOT_FOUND: 'Check the name of the group: `millrace group list`.',
  UNSUPPORTED_COMPRESSION_TYPE: 'Choose another compression: this broker does not know it.',
};

export interface MillraceErrorOptions {
  /** Default: by the code. */
  readonly isRetriable?: boolean;
  /** Default: by the code. */
  readonly remedy?: string | null;
  readonly cause?: unknown;
}

/** Everything that the client throws, but for what an AbortSignal gives as its reason. */
export class MillraceError extends Error {
  override readonly name: string = 'MillraceError';
  /** Kafka's name of the error, or a `ClientCode`. */
  readonly code: string;
  /** True when the same call may succeed later. The client has tried again by itself, for as long as it was allowed to. */
  readonly isRetriable: boolean;
  /** One sentence on what to do about it; null where there is nothing to say. */
  readonly remedy: string | null;

  /** @param message what was to be done and why it was not, without a full stop */
  constructor(code: string, message: string, options: MillraceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.isRetriable = options.isRetriable ?? retriableCodes.has(code);
    this.remedy = options.remedy === undefined ? (remedies[code] ?? null) : options.remedy;
  }
}

/**
 * What a broker's error code becomes.
 *
 * @param what what was to be done, for example "produce to orders-3"
 * @param message the broker's own words, where it had some
 */
export function brokerError(
  errorCode: number,
  what: string,
  message: string | null = null,
  options: MillraceErrorOptions = {},
): MillraceError {
  const info = errorInfo(errorCode);
  const text = (message === null || message === '' ? info.message : message).replace(/\.$/, '');
  return new MillraceError(info.name, `${what}: ${text}`, {
    isRetriable: info.retriable,
    ...options,
  });
}

/** Whether a broker's error code means that what is known about leaders is old. */
export function asksForMetadata(errorCode: number): boolean {
  return errorInfo(errorCode).refreshesMetadata || errorCode === ErrorCode.FENCED_LEADER_EPOCH;
}
