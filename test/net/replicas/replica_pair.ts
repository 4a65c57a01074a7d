/** Brokers 1, 2 (and 3) with copies of one partition, that do what the test says and nothing else. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { FetchedPartition } from '../../../replication/partition/follower_fetch.ts';
import type { AppendWaiter } from '../../../replication/partition/leader.ts';
import { splitBatches } from '../../sim/log_world.ts';
import { batchOf } from '../data_path/requests.ts';
import { WorldClock } from '../data_path/world_clock.ts';
import { ModelController } from './model_controller.ts';
import { ReplicaNode } from './replica_node.ts';

class Produced implements AppendWaiter {
  endOffset = 0;
  code: ErrorCode = ErrorCode.NONE;
  written: ErrorCode | null = null;
  committed: ErrorCode | null = null;

  onWritten(error: ErrorCode): void {
    assert.equal(this.written, null, 'told twice of the write');
    this.written = error;
  }

  onCommitted(error: ErrorCode): void {
    assert.equal(this.committed, null, 'told twice of the commit');
    this.committed = error;
  }
}

export class ReplicaPair {
  readonly clock: WorldClock = new WorldClock();
  readonly controller: ModelController;
  readonly nodes: ReplicaNode[];

  constructor(configs: Record<string, string> = {}, ids: readonly number[] = [1, 2]) {
    this.controller = new ModelController();
    this.nodes = ids.map((id) => new ReplicaNode(id, this.controller, this.clock, 1));
    for (const node of this.nodes) node.start();
    this.controller.begin(ids, configs);
    this.update();
    for (const id of ids) this.settle(id);
  }

  node(id: number): ReplicaNode {
    const node = this.nodes.find((one) => one.id === id);
    assert(node !== undefined);
    return node;
  }

  /** All metadata arrive. */
  update(): void {
    for (const node of this.nodes) while (node.isUp && node.deltas.length > 0) node.applyNext();
  }

  /** Writes, and flushes when asked to. */
  produce(id: number, value: string, all = true): Produced {
    const produced = new Produced();
    produced.code = this.node(id).append(batchOf([value]), all, produced);
    return produced;
  }

  settle(...ids: readonly number[]): void {
    for (const id of ids) {
      const node = this.node(id);
      while (node.isBusy) {
        node.endTurn();
        node.disk.endFlushes();
      }
    }
  }

  /** One fetch, whose answer the test may look at or change; it is received, not flushed. */
  fetch(
    id: number,
    change: (answer: FetchedPartition) => FetchedPartition = (answer) => answer,
  ): { answer: FetchedPartition; written: number; error: () => ErrorCode | null } {
    const node = this.node(id);
    const { follower } = node;
    assert(follower !== undefined, `broker ${id} does not follow`);
    const asked = follower.fetchState();
    const leader = this.node(asked.leaderId);
    const answer = change(leader.serve(id, node.brokerEpoch, asked, 100_000));
    const seen: { answer: FetchedPartition; written: number; replicated: ErrorCode | null } = {
      answer,
      written: 0,
      replicated: null,
    };
    follower.receive(answer, this.clock.wallMs(), {
      onWritten: () => {
        assert.equal(seen.replicated, null, 'written comes first');
        seen.written += 1;
      },
      onReplicated: (error) => {
        assert.equal(seen.replicated, null, 'told twice');
        seen.replicated = error;
      },
    });
    return {
      get answer() {
        return seen.answer;
      },
      get written() {
        return seen.written;
      },
      error: () => seen.replicated,
    };
  }

  /** Everybody writes, flushes, fetches, asks and hears once. */
  round(): void {
    for (const node of this.nodes) {
      if (!node.isUp) continue;
      this.settle(node.id);
      const { follower } = node;
      if (follower !== undefined && this.#isLed(follower.leaderId)) {
        const fetched = this.fetch(node.id, (answer) => ({ ...answer }));
        this.settle(node.id);
        assert.notEqual(fetched.error(), null);
      }
    }
    for (const node of this.nodes) {
      for (const { leader, proposal } of node.wishes.splice(0))
        leader.proposalAnswered(proposal, this.controller.alterPartition(node.id, proposal));
    }
    this.update();
  }

  /** What is promised comes about. */
  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Rounds until nothing changes any more. */
  rest(): void {
    for (let count = 0; count < 8; count += 1) this.round();
  }

  #isLed(id: number): boolean {
    return this.nodes.some((node) => node.id === id && node.leader !== undefined);
  }

  /** The values in a broker's log, with the epochs that wrote them. */
  valuesOf(id: number): string[] {
    const { replica, disk } = this.node(id);
    assert(replica !== undefined);
    const { log } = replica;
    const values: string[] = [];
    for (let next = log.logStartOffset; next < log.writtenOffset; ) {
      const slice = log.read(next, 100_000, log.writtenOffset, true);
      assert(typeof slice === 'object');
      const bytes = new Uint8Array(slice.length);
      disk.read(slice.fd, bytes, 0, slice.length, slice.position);
      for (const { lastOffset, bytes: batch } of splitBatches(bytes)) {
        values.push(`${batch[15]}${Buffer.from(batch).subarray(-2, -1).toString()}`);
        next = lastOffset + 1;
      }
    }
    return values;
  }
}
