/** Classic groups whose members ask for what no client needs. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { CoordinatorDriver, groupId } from './coordinator_driver.ts';

const test = suite('classic groups: hostile members');

for (const rebalanceTimeoutMs of [1, 0, -1, -2_147_483_648])
  test(`a rebalance time-out of ${rebalanceTimeoutMs} does not keep the coordinator busy`, () => {
    const driver = new CoordinatorDriver();
    const first = driver.alone({ groupInstanceId: 'i' });
    const dynamic = driver.join();
    driver.join({ memberId: first.memberId, groupInstanceId: 'i' });
    const { memberId, generationId, leader } = dynamic.body;
    driver.sync(memberId, generationId);
    driver.sync(first.memberId, generationId, { [leader]: 'a' }, 'i');
    assert.equal(driver.state(), 'Stable');
    // The static member is back, with another time-out, which alone counts once the other one has left.
    const back = driver.join({ groupInstanceId: 'i', rebalanceTimeoutMs });
    assert.equal(back.body.errorCode, ErrorCode.NONE);
    const members = [{ memberId, groupInstanceId: null, reason: null }];
    driver.ask('LeaveGroup', { groupId, members });
    assert.equal(driver.state(), 'PreparingRebalance');
    const startMs = driver.nowMs;
    let ticks = 0;
    for (; driver.nowMs < startMs + 5_000 && ticks < 100; ticks += 1)
      driver.advance(driver.coordinator.nextDeadlineMs - driver.nowMs);
    assert(ticks < 20, `${ticks} ticks in ${driver.nowMs - startMs} ms`);
    driver.advance(10_000);
    assert.equal(driver.state(), 'Empty');
  });

test.run();
