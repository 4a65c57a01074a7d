import { assertTooLargeIsRefused, clientSuite } from './client_suite.ts';

const { test, client } = clientSuite('python');

test('a record above max.message.bytes is refused', async () => {
  await assertTooLargeIsRefused(client().peer, /MSG_SIZE_TOO_LARGE/);
});

test.run();
