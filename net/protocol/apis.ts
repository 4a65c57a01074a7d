/** The table of APIs: keys, names, versions and the header versions that go with them. */
import { readFileSync } from 'node:fs';
import { ApiKey } from './api_key.gen.ts';
import type { ApiName } from './messages.gen.ts';

export interface ApiInfo {
  readonly key: number;
  readonly name: ApiName;
  readonly requestName: `${ApiName}Request`;
  readonly responseName: `${ApiName}Response`;
  /** Where Kafka serves it: "broker", "controller". */
  readonly listeners: readonly string[];
  /** Oldest and newest stable version for which schemas exist. */
  readonly minVersion: number;
  readonly maxVersion: number;
  /** What an ApiVersions response says in place of `minVersion`: older clients look for it (Produce). */
  readonly advertisedMinVersion: number;
  /** First version with compact encodings and tag sections; Infinity when none has them. */
  readonly flexibleFrom: number;
  /** True for requests between brokers, which need the ClusterAction right. */
  readonly clusterAction: boolean;
  /** True when a broker may forward it to the controller (KIP-590). */
  readonly forwardable: boolean;
}

interface ApiRow {
  key: number;
  name: ApiName;
  listeners: string[];
  minVersion: number;
  maxVersion: number;
  advertisedMinVersion?: number;
  flexibleFrom: number | null;
  clusterAction?: boolean;
  forwardable?: boolean;
}

/** Indexed by API key; holes where Kafka has removed an API. Read at load: every request needs it. */
const apis: readonly (ApiInfo | undefined)[] = loadApis();

/** The entry of API `key`, or null when there is no such API. */
export function apiInfo(key: number): ApiInfo | null {
  return apis[key] ?? null;
}

/** All APIs in the order of their keys. */
export function allApis(): ApiInfo[] {
  return apis.filter((api) => api !== undefined);
}

/**
 * Version of the request header: 2 (with a tag section) when the request is flexible, else 1. A version newer than
 * we know is taken to be flexible when a known one is, so that an unknown ApiVersions version can be answered.
 */
export function requestHeaderVersion(apiKey: number, apiVersion: number): 1 | 2 {
  const api = apis[apiKey];
  return api !== undefined && apiVersion >= api.flexibleFrom ? 2 : 1;
}

/**
 * Version of the response header: 1 (with a tag section) when the response is flexible, else 0. ApiVersions
 * responses always have header 0, since the client cannot know yet what the broker speaks (KIP-511).
 */
export function responseHeaderVersion(apiKey: number, apiVersion: number): 0 | 1 {
  const api = apis[apiKey];
  return api !== undefined && apiKey !== ApiKey.ApiVersions && apiVersion >= api.flexibleFrom
    ? 1
    : 0;
}

function loadApis(): (ApiInfo | undefined)[] {
  const url = new URL('./tables/apis.json', import.meta.url);
  const byKey: (ApiInfo | undefined)[] = [];
  for (const row of JSON.parse(readFileSync(url, 'utf8')) as ApiRow[]) {
    byKey[row.key] = {
      key: row.key,
      name: row.name,
      requestName: `${row.name}Request`,
      responseName: `${row.name}Response`,
      listeners: row.listeners,
      minVersion: row.minVersion,
      maxVersion: row.maxVersion,
      advertisedMinVersion: row.advertisedMinVersion ?? row.minVersion,
      flexibleFrom: row.flexibleFrom ?? Number.POSITIVE_INFINITY,
      clusterAction: row.clusterAction ?? false,
      forwardable: row.forwardable ?? false,
    };
  }
  return byKey;
}
