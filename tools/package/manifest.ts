/** The package.json of the npm package, made from the checkout's. */

/** What of the checkout's package.json goes into the package's. */
interface SourceManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/**
 * Not `private`, without the pinned runtime (whoever installs a package has a Node), and with what the other one cannot
 * have: entry points that are JavaScript.
 */
export function packageManifest(source: SourceManifest): Record<string, unknown> {
  const { name, version, description, license, type, dependencies } = source;
  return {
    name,
    version,
    description,
    keywords: ['kafka', 'kafka-client', 'broker', 'log', 'streaming', 'typescript'],
    license,
    type,
    // From 22.12 on CommonJS can require() what is ESM.
    engines: { node: '>=22.12' },
    bin: { millrace: 'dist/tools/millrace.js' },
    exports: {
      './client': {
        types: './dist/net/client/client.d.ts',
        default: './dist/net/client/client.js',
      },
      './package.json': './package.json',
    },
    // For compilers that do not know `exports`.
    typesVersions: { '*': { client: ['./dist/net/client/client.d.ts'] } },
    files: ['dist', 'docs'],
    dependencies,
  };
}
