/** Who changes the voters of a simulated quorum by hand: one step after another, each until it is known to be done. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { VoterChange } from '../../replication/raft/quorum.ts';
import type { RaftSimNode } from './raft_node.ts';

interface Step {
  readonly kind: 'add' | 'remove';
  readonly node: RaftSimNode;
  /** Of the node's directory when the step was planned; the present one, if null. */
  readonly directoryId: string | null;
}

export class RaftOperator {
  readonly #steps: Step[] = [];
  /** Number of the attempt under way, 0 for none. */
  #attempt = 0;
  #attempts = 0;
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get isDone(): boolean {
    return this.#steps.length === 0;
  }

  remove(node: RaftSimNode, directoryId: string): void {
    this.#steps.push({ kind: 'remove', node, directoryId });
  }

  add(node: RaftSimNode): void {
    this.#steps.push({ kind: 'add', node, directoryId: null });
  }

  /** Asks the leader among `nodes`, if there is one and nothing is under way. */
  act(nodes: readonly RaftSimNode[], after: (ms: number, run: () => void) => void): void {
    const step = this.#steps[0];
    const leader = nodes.find(({ isLeading }) => isLeading);
    if (step === undefined || leader === undefined || this.#attempt !== 0) return;
    const quorum = leader.quorum!;
    const voterId = step.node.id;
    const voterDirectoryId = step.directoryId ?? step.node.directoryId;
    this.#attempts += 1;
    const attempt = this.#attempts;
    this.#attempt = attempt;
    const end = (result: VoterChange | null): void => {
      if (this.#attempt !== attempt) return;
      this.#attempt = 0;
      const done = step.kind === 'add' ? ErrorCode.DUPLICATE_VOTER : ErrorCode.VOTER_NOT_FOUND;
      if (result?.errorCode !== ErrorCode.NONE && result?.errorCode !== done) return;
      this.#steps.shift();
      this.#onChange();
    };
    const endpoints = [{ name: 'CONTROLLER', host: `node${voterId}`, port: 9093 }];
    const asked =
      step.kind === 'add'
        ? quorum.addVoter({ voterId, voterDirectoryId, endpoints }, 3_000)
        : quorum.removeVoter(voterId, voterDirectoryId, 3_000);
    asked.then(end, () => end(null));
    // The leader may die with the answer.
    after(4_000, () => end(null));
  }
}
