/**
 * What the thread of the quorum and the other threads say to each other. All of it is structured-cloneable.
 *
 * A thread joins when its port is attached: it first gets a snapshot delta, then every committed delta in order. It
 * answers each delta with `quorum.applied` once it has acted on it. Replies that promise "applied everywhere" come after
 * every attached thread has said so, and on each port after the delta that they speak of.
 */
import type { MetadataDelta } from '../replication/metadata/records.ts';
import type { QuorumReply, QuorumRequest } from './quorum_api.ts';

export type ToQuorum =
  | {
      readonly type: 'quorum.request';
      readonly id: number;
      readonly request: QuorumRequest;
      /** How long an answer is waited for; ≤ 0: nobody waits. */
      readonly timeoutMs: number;
    }
  | { readonly type: 'quorum.applied'; readonly offset: number };

export type FromQuorum =
  | { readonly type: 'quorum.delta'; readonly delta: MetadataDelta }
  | { readonly type: 'quorum.reply'; readonly id: number; readonly reply: QuorumReply };

/** The part of node's MessagePort (and of a Worker and its parentPort) that is used here. */
export interface QuorumPort {
  postMessage(message: unknown): void;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

/** True for messages of this protocol, so that a port can carry other ones too. */
export function isQuorumMessage(message: unknown): message is ToQuorum | FromQuorum {
  return (
    typeof message === 'object' &&
    message !== null &&
    'type' in message &&
    typeof message.type === 'string' &&
    message.type.startsWith('quorum.')
  );
}
