/** What the commands' exit codes mean; docs/cli.md lists them for people. */
export const CliExit = {
  ok: 0,
  /** The cluster or the machine refused: an unknown topic, a full disk, … */
  failed: 1,
  /** Wrong option, argument or input; nothing was done. */
  usage: 2,
  /** No broker answered: not there, wrong port, TLS where there is none, … */
  unreachable: 3,
  /** `log verify` has found something wrong. */
  damaged: 4,
} as const;
