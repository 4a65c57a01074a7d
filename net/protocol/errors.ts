/** Kafka's error codes as data: names, texts for people, and what a client may do about them. */
import { readFileSync } from 'node:fs';

export interface ErrorInfo {
  readonly code: number;
  /** Kafka's constant name, for example OFFSET_OUT_OF_RANGE. */
  readonly name: string;
  /** One sentence for people, for the `errorMessage` fields where a handler has nothing more exact to say. */
  readonly message: string;
  /** True when the same request may succeed later. */
  readonly retriable: boolean;
  /** True when a client must refresh its metadata before it tries again. */
  readonly refreshesMetadata: boolean;
}

type ErrorRow = Omit<ErrorInfo, 'message'> & { readonly message?: string };

let byCode: Map<number, ErrorInfo> | null = null;

/** The entry of `code`; a code that Kafka does not define gets the entry of UNKNOWN_SERVER_ERROR under that code. */
export function errorInfo(code: number): ErrorInfo {
  byCode ??= loadErrors();
  const info = byCode.get(code);
  if (info !== undefined) return info;
  return {
    code,
    name: `UNKNOWN_ERROR_${code}`,
    message: `Error code ${code} is not known to this version.`,
    retriable: false,
    refreshesMetadata: false,
  };
}

/** Kafka's constant name of `code`. */
export function errorName(code: number): string {
  return errorInfo(code).name;
}

/** One sentence for people about `code`. */
export function errorMessage(code: number): string {
  return errorInfo(code).message;
}

/** True when a client may send the same request again after `code`. */
export function isRetriable(code: number): boolean {
  return errorInfo(code).retriable;
}

function loadErrors(): Map<number, ErrorInfo> {
  const url = new URL('./tables/errors.json', import.meta.url);
  const rows = JSON.parse(readFileSync(url, 'utf8')) as ErrorRow[];
  return new Map(
    rows.map((row) => [row.code, { ...row, message: row.message ?? messageFromName(row.name) }]),
  );
}

/** INVALID_TXN_STATE becomes "Invalid txn state.": better than nothing where the table has no text. */
function messageFromName(name: string): string {
  const words = name.toLowerCase().replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
