import { assertTooLargeIsRefused, clientSuite } from './client_suite.ts';

const { test, client } = clientSuite('java');

test('a record above max.message.bytes is refused', async () => {
  await assertTooLargeIsRefused(client().peer, /RecordTooLargeException/);
});

test.run();
