/**
 * What figure 8 of the Raft paper is about: an entry of an earlier term on a majority of the disks is not committed yet,
 * as a node with an entry of a later term can still be elected by that majority.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RaftRule } from '../../replication/raft/raft_types.ts';
import { CalmWorld } from './raft_calm_world.ts';
import type { RaftSimNode } from './raft_node.ts';

const test = suite('figure 8');

function isolate(world: CalmWorld, node: RaftSimNode): void {
  for (const { id } of world.nodes) {
    world.network.cut(node.id, id);
    world.network.cut(id, node.id);
  }
}

async function replay(seed: number, without: RaftRule | null): Promise<void> {
  const world = new CalmWorld(seed, 3, without);
  for (const node of world.nodes) node.start();
  await world.until(() => world.leader !== undefined);
  await world.pass(1_000);
  const first = world.leader!;
  const others = world.nodes.filter((node) => node !== first);

  // The first leader writes what nobody else gets, and dies.
  isolate(world, first);
  const record = { type: 'ConfigRecord', resourceType: 4, resourceName: '' } as const;
  first.quorum!.append([{ ...record, name: 'x', value: 'x' }]);
  await world.pass(50);
  first.crash();

  // So does the second one, with the first batch of its term.
  let second: RaftSimNode | null = null;
  world.onLeader = (node) => {
    second = node;
    isolate(world, node);
  };
  await world.until(() => second !== null);
  await world.pass(50);
  second!.crash();
  world.network.healAll();
  world.network.delayMaxMs = 1;

  // The first one leads again. Its own batch reaches no disk, but the entry of the earlier term a majority.
  let isBack: boolean = false;
  world.onLeader = (node) => {
    isBack = true;
    world.slowNode = node;
  };
  first.start();
  await world.until(() => isBack);
  assert(world.nodes.filter(({ isUp }) => isUp).length === 2);
  await world.pass(18);
  isolate(world, first);
  first.crash();

  // The second one has an entry of a later term in that place, and a majority that elects it.
  world.network.healAll();
  world.onLeader = () => {};
  second!.start();
  await world.until(() => world.leader !== undefined);
  first.start();
  const ends = (): number[] => world.nodes.map((node) => world.checks.reportedBy(node));
  await world.until(() => new Set(ends()).size === 1 && (ends()[0] ?? 0) > 4);
  assert(others.includes(second!));
}

test('entries of earlier terms are safe only with one of the own term', async () => {
  for (let seed = 1; seed <= 20; seed += 1) await replay(seed, null);
});

test('a leader without that rule is noticed', async () => {
  for (let seed = 1; seed <= 20; seed += 1)
    await assert.rejects(replay(seed, 'own term commits'), /to be cut at .* committed up to/);
});

test.run();
