/** What all calls of the admin client take. */
export interface AdminOptions {
  readonly signal?: AbortSignal | undefined;
  /** All attempts together; default the client's `timeoutMs`. */
  readonly timeoutMs?: number | undefined;
}

/** What a cluster has of a topic or group name, quoted for messages. */
export function quoted(name: string): string {
  return JSON.stringify(name);
}
