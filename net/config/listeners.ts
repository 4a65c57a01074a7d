/** `listeners`, `advertised.listeners` and the keys around them: parsing, and the rules between them. */
import type { Settings } from './settings.ts';

export interface Listener {
  /** Upper-case name, unique in the configuration. */
  readonly name: string;
  /** The only one that this version opens. */
  readonly protocol: 'PLAINTEXT';
  /** Address or host name without brackets; empty in `listeners` for all interfaces. */
  readonly host: string;
  /** 0: chosen by the system. An advertised port 0 stands for the port that the listener of that name got. */
  readonly port: number;
}

export interface ListenerSettings {
  /** What to open, in the order of the file. Controller listeners are not among them, see below. */
  readonly listeners: readonly Listener[];
  /** One for each of `listeners`, in the same order: where clients are sent. */
  readonly advertisedListeners: readonly Listener[];
  /** Listeners named in `controller.listener.names`. Of a node that is alone they stay closed: nobody would connect. */
  readonly controllerListeners: readonly Listener[];
  /** One for each of them, in the same order: where the other members of the quorum find this node. */
  readonly advertisedControllerListeners: readonly Listener[];
  /** Name of the listener that brokers use among themselves. */
  readonly interBrokerListenerName: string;
}

interface Endpoint {
  readonly text: string;
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

const refusedProtocols: ReadonlySet<string> = new Set(['SSL', 'SASL_PLAINTEXT', 'SASL_SSL']);

/**
 * Reads and checks all listener keys. `hostname` is what is advertised for a listener on all interfaces; `isCluster`: the
 * controllers' listeners are opened, and there must be one.
 */
export function readListeners(
  settings: Settings,
  hostname: string,
  isCluster: boolean,
): ListenerSettings {
  const controllerNames = settings
    .list('controller.listener.names')
    .map((name) => name.toUpperCase());
  const protocols = protocolMap(settings, controllerNames);
  const all = endpoints(settings, 'listeners');
  for (const endpoint of all) checkProtocol(settings, 'listeners', endpoint, protocols);
  checkDuplicates(settings, 'listeners', all, true);
  const controller = all.filter(({ name }) => controllerNames.includes(name));
  const open = all.filter(({ name }) => !controllerNames.includes(name));
  if (all.length > 0 && open.length === 0) {
    settings.refuse(
      'listeners',
      'every listener is kept for controllers by controller.listener.names. Allowed: at least one for clients',
    );
  }
  checkController(settings, controller, controllerNames, isCluster);
  const listeners = open.map(plain);
  const controllerListeners = controller.map(plain);
  const told = advertised(
    settings,
    [...listeners, ...controllerListeners],
    controllerNames,
    hostname,
  );
  return {
    listeners,
    advertisedListeners: told.slice(0, listeners.length),
    controllerListeners,
    advertisedControllerListeners: told.slice(listeners.length),
    interBrokerListenerName: interBrokerName(settings, listeners),
  };
}

function checkController(
  settings: Settings,
  controller: readonly Endpoint[],
  names: readonly string[],
  isCluster: boolean,
): void {
  if (isCluster && controller.length === 0)
    settings.refuse(
      'listeners',
      `a node of a cluster needs a listener for the controllers' quorum as well. Allowed: one more, such as ${names[0] ?? 'CONTROLLER'}://:9093`,
    );
  if (isCluster || controller.length === 0) return;
  const texts = controller.map(({ text }) => text).join(', ');
  settings.problems.warn(`Controller listener ${texts} stays closed: this node is the only voter.`);
}

function plain({ name, host, port }: Endpoint): Listener {
  return { name, protocol: 'PLAINTEXT', host, port };
}

function endpoints(settings: Settings, key: string): Endpoint[] {
  const result: Endpoint[] = [];
  for (const text of settings.list(key)) {
    const endpoint = parseEndpoint(text);
    if (endpoint === null) {
      settings.refuse(
        key,
        `allowed: NAME://host:port with a port from 0 to 65535, comma-separated. ${text} is not that`,
      );
    } else result.push(endpoint);
  }
  return result;
}

/** `NAME://host:port`, `NAME://:port`, `NAME://[::1]:port`; null for anything else. */
export function parseEndpoint(text: string): Endpoint | null {
  const match = /^([A-Za-z0-9_-]+):\/\/(\[[0-9a-fA-F:.%a-z]+\]|[0-9a-zA-Z\-%._:]*):(\d{1,5})$/.exec(
    text,
  );
  if (match === null) return null;
  const [, name = '', host = '', digits = ''] = match;
  const port = Number(digits);
  if (port > 65_535) return null;
  return { text, name: name.toUpperCase(), host: host.replace(/^\[|\]$/g, ''), port };
}

function protocolMap(settings: Settings, controllerNames: readonly string[]): Map<string, string> {
  const key = 'listener.security.protocol.map';
  const protocols = new Map<string, string>();
  for (const item of (settings.text(key) ?? '').split(',')) {
    if (item.trim() === '') continue;
    const [name = '', protocol = '', ...rest] = item.split(':').map((part) => part.trim());
    const known = protocol === 'PLAINTEXT' || refusedProtocols.has(protocol);
    if (name === '' || !known || rest.length > 0) {
      settings.refuse(
        key,
        `allowed: NAME:PROTOCOL, comma-separated, the protocol one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL`,
      );
    } else protocols.set(name.toUpperCase(), protocol);
  }
  if (!settings.has(key)) {
    for (const name of controllerNames) {
      if (!protocols.has(name)) protocols.set(name, 'PLAINTEXT');
    }
  }
  return protocols;
}

function checkProtocol(
  settings: Settings,
  key: string,
  endpoint: Endpoint,
  protocols: ReadonlyMap<string, string>,
): void {
  const protocol = protocols.get(endpoint.name);
  if (protocol === undefined) {
    settings.refuse(
      key,
      `listener.security.protocol.map has no protocol for ${endpoint.name}. Allowed: names that it has, such as PLAINTEXT`,
    );
  } else if (refusedProtocols.has(protocol)) {
    settings.refuse(
      key,
      `${endpoint.text} would be ${protocol}, and Millrace has no TLS and no SASL yet. It does not open such a listener as plain text. Allowed: PLAINTEXT listeners`,
    );
  }
}

function checkDuplicates(
  settings: Settings,
  key: string,
  all: readonly Endpoint[],
  addresses: boolean,
): void {
  const names = new Set<string>();
  const places = new Set<string>();
  for (const { name, host, port } of all) {
    const place = `${host}:${port}`;
    if (names.has(name)) settings.refuse(key, `the name ${name} stands twice. Allowed: each once`);
    else if (addresses && port !== 0 && places.has(place)) {
      settings.refuse(key, `${place} stands twice. Allowed: each address once`);
    }
    names.add(name);
    places.add(place);
  }
}

/** The host as it stands in an address with a port: IPv6 addresses in brackets. */
export function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** Whether the address means "every interface" and so is no address to connect to. */
export function isWildcard(host: string): boolean {
  return host === '' || host === '0.0.0.0' || /^(0{0,4}:){2,7}0{0,4}$/.test(host);
}

/** Whether connections to the address never leave this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^127\.\d+\.\d+\.\d+$/.test(host) || host === '::1';
}

function advertised(
  settings: Settings,
  listeners: readonly Listener[],
  controllerNames: readonly string[],
  hostname: string,
): Listener[] {
  const key = 'advertised.listeners';
  const given = new Map<string, Endpoint>();
  const all = endpoints(settings, key);
  checkDuplicates(settings, key, all, false);
  for (const endpoint of all) {
    const isKnown = listeners.some(({ name }) => name === endpoint.name);
    if (!isKnown && controllerNames.includes(endpoint.name)) continue;
    given.set(endpoint.name, endpoint);
    if (!isKnown) {
      settings.refuse(
        key,
        `listeners has no ${endpoint.name}. Allowed: the names in listeners (${listeners.map(({ name }) => name).join(', ')})`,
      );
    } else if (isWildcard(endpoint.host)) {
      settings.refuse(
        key,
        `clients cannot connect to ${endpoint.host === '' ? 'an empty host' : endpoint.host}. Allowed: a name or address by which they reach this machine`,
      );
    }
  }
  return listeners.map((listener) => {
    const own = given.get(listener.name);
    if (own !== undefined) return plain(own);
    return isWildcard(listener.host) ? { ...listener, host: hostname } : listener;
  });
}

function interBrokerName(settings: Settings, listeners: readonly Listener[]): string {
  const protocol = settings.text('security.inter.broker.protocol');
  if (protocol !== 'PLAINTEXT') {
    settings.refuse(
      'security.inter.broker.protocol',
      'Millrace has no TLS and no SASL yet. Allowed: PLAINTEXT',
    );
  }
  const name = settings.text('inter.broker.listener.name')?.toUpperCase();
  if (name === undefined) return listeners[0]?.name ?? '';
  if (settings.has('security.inter.broker.protocol')) {
    settings.refuse(
      'inter.broker.listener.name',
      'security.inter.broker.protocol is set too. Allowed: one of the two',
    );
  }
  if (!listeners.some((listener) => listener.name === name)) {
    settings.refuse(
      'inter.broker.listener.name',
      `allowed: one of the names in listeners (${listeners.map((listener) => listener.name).join(', ')})`,
    );
  }
  return name;
}
