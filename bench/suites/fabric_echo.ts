/** The other thread of the round trips: answers each request with its own words. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Bell, Doorbell } from '../../engine/thread/doorbell.ts';
import { Answerer, type LinkMemory } from '../../engine/thread/link.ts';

export interface EchoData {
  readonly link: LinkMemory;
  readonly port: MessagePort;
  readonly ownFlag: SharedArrayBuffer;
  readonly otherFlag: SharedArrayBuffer;
}

const { link, port, ownFlag, otherFlag } = workerData as EchoData;
const answerer = new Answerer(link, new Bell(otherFlag, port));
new Doorbell(ownFlag, () => {
  answerer.drain(({ numbers }, at) => {
    answerer.words.numbers[3] = numbers[at + 2] as number;
    answerer.answer(1, numbers[at + 1] as number, true);
    return true;
  });
}).listen(port);
port.ref();
parentPort?.postMessage('ready');
