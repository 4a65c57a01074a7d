import { assertTooLargeIsRefused, clientSuite } from './client_suite.ts';

const { test, client } = clientSuite('franz');

test('a record above max.message.bytes is refused', async () => {
  await assertTooLargeIsRefused(client().peer, /MESSAGE_TOO_LARGE/);
});

test.run();
