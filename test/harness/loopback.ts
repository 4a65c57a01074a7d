/**
 * The loopback address of this process's clusters, for listeners that come back on the same port. Connections to it come from
 * 127.0.0.1, so that none of them can have taken the port of a broker that is down: the kernel takes both from one range.
 */
export const ownLoopback: string = [
  127,
  1 + ((process.pid >> 16) & 0x3f),
  (process.pid >> 8) & 0xff,
  process.pid & 0xff,
].join('.');
