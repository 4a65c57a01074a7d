/** Sockets to brokers, plain or TLS, and what people are told when there is something else at the other end. */
import { createConnection, isIP, type Socket } from 'node:net';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { ClientCode, MillraceError } from './errors.ts';

const readBufferBytes = 64 * 1024;
/** A TLS handshake that takes longer is taken for none. */
const probeMs = 2_000;

export interface SocketOptions {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly tls: TlsOptions | null;
  readonly signal: AbortSignal | undefined;
  /** Called with what was read, which lies in memory that the next read uses again. */
  readonly onBytes: (chunk: Uint8Array) => void;
}

/** Connects. Throws BROKER_UNREACHABLE, or the signal's reason. */
export async function openSocket(options: SocketOptions): Promise<Socket> {
  const { host, port, timeoutMs, tls, signal, onBytes } = options;
  signal?.throwIfAborted();
  const socket = tls === null ? plainSocket(host, port, onBytes) : await tlsSocket(options, tls);
  return new Promise((resolve, reject) => {
    const name = `${host}:${port}`;
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      socket.removeListener('error', fail);
    };
    const giveUp = (reason: unknown): void => {
      settle();
      // An error after this interests nobody, and must not end the process.
      socket.on('error', () => undefined);
      socket.destroy();
      reject(reason);
    };
    const fail = (error: NodeJS.ErrnoException): void =>
      giveUp((tls === null ? null : tlsError(name, error)) ?? unreachable(name, error));
    const abort = (): void => giveUp(signal?.reason);
    const late = (): void => {
      const what = `${name} did not take the connection within ${Math.round(timeoutMs)} ms`;
      giveUp(new MillraceError(ClientCode.BROKER_UNREACHABLE, what));
    };
    const timer = setTimeout(late, timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    socket.once('error', fail);
    socket.once(tls === null ? 'connect' : 'secureConnect', () => {
      settle();
      resolve(socket);
    });
  });
}

function plainSocket(host: string, port: number, onBytes: (chunk: Uint8Array) => void): Socket {
  const buffer = Buffer.allocUnsafeSlow(readBufferBytes);
  const callback = (length: number): boolean => {
    onBytes(buffer.subarray(0, length));
    return true;
  };
  return createConnection({
    ...{ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 },
    onread: { buffer, callback },
  });
}

/** Loaded only where it is asked for. */
async function tlsSocket(options: SocketOptions, tls: TlsOptions): Promise<Socket> {
  const { connect } = await import('node:tls');
  const { host, port, onBytes } = options;
  // An address is no server name (RFC 6066).
  const named = isIP(host) === 0 ? { servername: host } : {};
  const socket = connect({ ...named, ...tls, host, port });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 60_000);
  socket.on('data', onBytes);
  return socket;
}

function unreachable(name: string, error: NodeJS.ErrnoException): MillraceError {
  const cause = error;
  const fail = (what: string, remedy?: string): MillraceError =>
    new MillraceError(ClientCode.BROKER_UNREACHABLE, what, {
      cause,
      ...(remedy === undefined ? {} : { remedy }),
    });
  switch (error.code) {
    case 'ECONNREFUSED':
      return fail(`nothing listens at ${name}`);
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return fail(
        `the host of ${name} is not known`,
        "Check the host's name, and that the broker's advertised.listeners names one that this machine can resolve.",
      );
    default:
      return fail(`no connection to ${name}: ${error.message || error.code}`);
  }
}

const noTlsRemedy = "Leave TLS out, or use the port of the broker's TLS listener.";

/** Why a connection failed, where TLS is why; else null. What will be the same at the next attempt is not retriable. */
function tlsError(name: string, error: NodeJS.ErrnoException): MillraceError | null {
  const { code = '', message } = error;
  const fail = (what: string, remedy: string, isRetriable = false): MillraceError =>
    new MillraceError(ClientCode.BROKER_UNREACHABLE, what, { cause: error, remedy, isRetriable });
  if (code === 'ECONNRESET') return fail(`${name} hung up on the TLS handshake`, noTlsRemedy, true);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return fail(
      `the certificate of ${name} is for another host: ${message}`,
      'Use a name that is in the certificate, or give it as `tls: { servername }`.',
    );
  if (/CERT|SIGNATURE|ISSUER/.test(code))
    return fail(
      `the certificate of ${name} is not trusted: ${message.split(';')[0]}`,
      'Name the authority to trust: NODE_EXTRA_CA_CERTS=ca.pem in the environment, or `tls: { ca }`.',
    );
  if (code !== 'EPROTO' && !code.startsWith('ERR_SSL_')) return null;
  if (/ALERT/i.test(`${code} ${message}`))
    return fail(
      `${name} refuses the TLS handshake (${code})`,
      'Check the versions of TLS, and whether the broker asks for a certificate of the client: `tls: { cert, key }`.',
    );
  return fail(`${name} does not speak TLS`, noTlsRemedy);
}

/** Whether a TLS server is there: most of them hang up on plain text without a word. */
export async function isTlsListener(host: string, port: number): Promise<boolean> {
  const { connect } = await import('node:tls');
  return new Promise((resolve) => {
    // Nothing is sent over it, so that it does not matter whom it belongs to.
    const socket = connect({ host, port, rejectUnauthorized: false });
    const settle = (isTls: boolean): void => {
      clearTimeout(timer);
      socket.removeAllListeners('error').on('error', () => undefined);
      socket.destroy();
      resolve(isTls);
    };
    const timer = setTimeout(() => settle(false), probeMs);
    socket.once('secureConnect', () => settle(true));
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => settle(/ALERT/.test(code)));
  });
}

/** What is said to who addresses a TLS listener in plain text. */
export function tlsPortError(name: string, cause?: unknown): MillraceError {
  const what = `${name} is a TLS listener, and was addressed in plain text`;
  return new MillraceError(ClientCode.TLS_PORT, what, { cause });
}

/** Something takes connections there, and says nothing. */
export function silentError(name: string, span: string): MillraceError {
  return new MillraceError(
    ClientCode.TIMED_OUT,
    `${name} took the connection, and did not answer ${span}`,
    {
      remedy: 'Check the port: it may belong to another service. A broker that hangs does so, too.',
    },
  );
}

/** What answers there is no Kafka; `begin` are the first bytes that it sent. */
export function strangerError(name: string, begin: Uint8Array, cause?: unknown): MillraceError {
  // A TLS record: alert or handshake, of version 3.x.
  if ((begin[0] === 0x15 || begin[0] === 0x16) && begin[1] === 0x03)
    return tlsPortError(name, cause);
  const text = Buffer.from(begin.subarray(0, 16)).toString('latin1');
  const begins = /^[\x20-\x7e]{4}/.test(text)
    ? ` (it begins with ${JSON.stringify(text.replace(/[^\x20-\x7e].*$/s, ''))})`
    : '';
  const what = text.startsWith('HTTP/')
    ? `${name} is an HTTP server, not a Kafka broker`
    : `${name} does not answer in Kafka's protocol${begins}`;
  return new MillraceError(ClientCode.NOT_KAFKA, what, { cause });
}
