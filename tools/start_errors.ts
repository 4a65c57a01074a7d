/** Why a broker could not start, for people: system errors in the words of the settings that cause them. */
import type { BrokerConfig } from '../net/config/broker_config.ts';
import { hostText, type Listener } from '../net/config/listeners.ts';

/** The explanation of an error that a setting or the machine can cause; null for one that nobody expects. */
export function explainStartError(error: unknown, config: BrokerConfig): string | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return explainListenError(error, code, config) ?? explainDiskError(error, code, config);
}

function explainListenError(error: Error, code: string, config: BrokerConfig): string | null {
  if (!('syscall' in error) || !['listen', 'bind', 'getaddrinfo'].includes(String(error.syscall))) {
    return null;
  }
  const listener = failedListener(error, config);
  const where = listenerText(listener);
  switch (code) {
    case 'EADDRINUSE':
      return `listeners: ${where} is in use by another process. Stop that one, or choose another port: --set listeners=${listener.name}://${hostText(listener.host)}:${listener.port + 1}`;
    case 'EACCES':
      return `listeners: ${where} is not allowed, ports below 1024 need privileges. Choose a higher port: --set listeners=${listener.name}://${hostText(listener.host)}:9092`;
    case 'EADDRNOTAVAIL':
      return `listeners: ${where} is no address of this machine. Use one of its addresses, or none for all: --set listeners=${listener.name}://:${listener.port} --set advertised.listeners=${listener.name}://${hostText(listener.host)}:${listener.port}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `listeners: the name in ${where} cannot be resolved`;
    default:
      return `listeners: ${where}: ${error.message}`;
  }
}

/** The listener that the error is about: system errors carry address and port. */
function failedListener(error: Error, config: BrokerConfig): Listener {
  const port = 'port' in error ? Number(error.port) : Number.NaN;
  const found = config.listeners.find((listener) => listener.port === port);
  return found ?? (config.listeners[0] as Listener);
}

function listenerText({ name, host, port }: Listener): string {
  return `${name}://${hostText(host)}:${port}`;
}

const diskReasons: Readonly<Record<string, string>> = {
  EACCES: 'this user is not allowed to write there',
  EPERM: 'this user is not allowed to write there',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'a file of that name is in the way',
  ENOENT: 'the path does not exist and could not be made',
  ENOSPC: 'no space left on the disk',
  EDQUOT: "this user's disk quota is used up",
  EMFILE: 'too many open files; raise the limit (ulimit -n)',
  ENFILE: 'too many open files on this machine',
  EIO: 'the disk reports an error',
};

function explainDiskError(error: Error, code: string, config: BrokerConfig): string | null {
  const reason = Object.hasOwn(diskReasons, code) ? diskReasons[code] : undefined;
  if (reason !== undefined) {
    const path = 'path' in error && typeof error.path === 'string' ? error.path : null;
    return `log.dirs: ${path ?? config.logDirs.join(', ')}: ${reason} (${error.message})`;
  }
  // Errors of the data directory itself (locked, of another node, ...) are written for people where they arise. By name:
  // importing the class would load the log engine before there is anything to explain.
  return error.constructor.name === 'LogDirectoryError' ? `log.dirs: ${error.message}` : null;
}
