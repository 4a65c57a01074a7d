/**
 * How soon a metadata quorum has a leader again, in virtual time on a network and disks of a few milliseconds: after a
 * kill, when the port of the leader refuses, and after a resignation.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { CalmWorld } from './raft_calm_world.ts';
import type { RaftSimNode } from './raft_node.ts';

const test = suite('failover of the metadata quorum');

async function gaps(size: number, end: (leader: RaftSimNode) => void): Promise<number[]> {
  const found: number[] = [];
  for (let seed = 1; seed <= 40; seed += 1) {
    const world = new CalmWorld(seed, size);
    for (const node of world.nodes) node.start();
    await world.until(() => world.leader !== undefined);
    await world.pass(1_000 + world.random.below(1_000));
    const leader = world.leader!;
    end(leader);
    const isLed = (): boolean => world.nodes.some((node) => node.isLeading && node !== leader);
    found.push(await world.until(isLed));
  }
  return found.sort((one, other) => one - other);
}

for (const size of [3, 5]) {
  test(`a killed leader of ${size} is replaced within 250 ms, mostly within 100 ms`, async () => {
    const found = await gaps(size, (leader) => leader.crash());
    assert(found[20]! < 100 && found.at(-1)! < 250, found.map(Math.round).join(' '));
  });

  test(`one that resigns is replaced within 100 ms (${size} voters)`, async () => {
    const found = await gaps(size, (leader) => {
      leader.quorum!.resign().catch((error: unknown) => assert.fail(String(error)));
    });
    assert(found.at(-1)! < 100, found.map(Math.round).join(' '));
  });
}

test('a silent leader is replaced soon after the fetch time-out', async () => {
  const found = await gaps(3, (leader) => leader.pause(60_000));
  assert(found.at(-1)! < 3_500, found.map(Math.round).join(' '));
});

for (const size of [3, 5])
  test(`who follows a silent leader of ${size} knows when it was heard last`, async () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const world = new CalmWorld(seed, size);
      for (const node of world.nodes) node.start();
      await world.until(() => world.leader !== undefined);
      await world.pass(1_000 + world.random.below(1_000));
      const before = world.leader!;
      const stoppedMs = world.nowMs();
      before.pause(60_000);
      const isLed = (): boolean => world.nodes.some((one) => one.isLeading && one !== before);
      await world.until(isLed);
      const { silent } = world.nodes.find((one) => one.isLeading && one !== before)!;
      assert.equal(silent?.nodeId, before.id, `seed ${seed}`);
      // A fetch to which nothing is new waits for half a second, and answers are on their way for some milliseconds.
      const apartMs = silent.sinceMs - stoppedMs;
      assert(apartMs > -700 && apartMs < 100, `seed ${seed}: ${apartMs} ms`);
    }
  });

test('empty nodes found a cluster within 500 ms of the last one’s start', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new CalmWorld(seed, 3);
    world.nodes[1]!.start();
    world.nodes[2]!.start();
    await world.pass(3_000);
    assert.equal(world.leader, undefined, 'two of three have founded a cluster');
    world.nodes[0]!.start();
    const tookMs = await world.until(() => world.nodes.every(({ clusterId }) => clusterId !== ''));
    assert(tookMs < 500, `seed ${seed}: ${tookMs} ms`);
  }
});

test('a cluster that starts again has a leader within 500 ms', async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new CalmWorld(seed, 3);
    for (const node of world.nodes) node.start();
    await world.until(() => world.leader !== undefined);
    await world.pass(1_000);
    for (const node of world.nodes) node.crash();
    for (const node of world.nodes) world.after(world.random.below(50), () => node.start());
    const tookMs = await world.until(() => world.leader !== undefined);
    assert(tookMs < 500, `seed ${seed}: ${tookMs} ms`);
  }
});

test('one node alone can become three', async () => {
  const world = new CalmWorld(1, 3);
  const [first, ...others] = world.nodes;
  first!.start([1]);
  await world.until(() => world.leader !== undefined);
  await world.pass(100);
  first!.crash();
  for (const node of world.nodes) node.start();
  for (const { id, directoryId } of others) {
    const isFollowing = (): boolean =>
      world.nodes.every((node) => world.checks.reportedBy(node) === world.checks.endOffset);
    await world.until(() => world.leader !== undefined && isFollowing());
    let isAdded: boolean = false;
    const voter = { voterId: id, voterDirectoryId: directoryId, endpoints: [] };
    world.leader!.quorum!.addVoter(voter, 2_000).then(
      ({ errorCode }) => {
        assert.equal(errorCode, ErrorCode.NONE);
        isAdded = true;
      },
      (error: unknown) => assert.fail(String(error)),
    );
    await world.until(() => isAdded);
  }
  assert.equal(world.leader!.quorum!.voters.length, 3);
  world.leader!.crash();
  await world.until(() => world.leader !== undefined);
  assert.notEqual(world.leader, first);
});

test.run();
