/** What is wrong with the files of a log directory, as `millrace log verify` finds it. */

/**
 * `damage`: records, or what says which records are committed, cannot be read. `rebuildable`: something that a broker
 * makes again from the records. `note`: nothing to do, worth knowing.
 */
export type Severity = 'damage' | 'rebuildable' | 'note';

export interface Finding {
  readonly severity: Severity;
  /** The file, as reachable from where the command runs. */
  readonly path: string;
  /** Byte in the file where it begins; null where the file as a whole is meant. */
  readonly position: number | null;
  /** Bytes that it takes up; null where that means nothing. */
  readonly length: number | null;
  /** First offset that is affected, and the first behind it; null where no records are. */
  readonly fromOffset: number | null;
  readonly toOffset: number | null;
  readonly problem: string;
  readonly remedy: string | null;
}

export type Report = (finding: Finding) => void;

/** What a finding need not say. */
const nothing = {
  position: null,
  length: null,
  fromOffset: null,
  toOffset: null,
  remedy: null,
} as const;

type FindingInput = Pick<Finding, 'severity' | 'path' | 'problem'> & Partial<Finding>;

export function finding(input: FindingInput): Finding {
  return { ...nothing, ...input };
}

export const remedies = {
  records:
    'Where another replica is in sync: stop the broker, move the directory of this partition away and start again; it is fetched anew. Where this is the only copy, these records are lost: consumers go on behind them.',
  index:
    'With the broker stopped, remove the file: it is made again from the log. No record is affected.',
  epochs:
    'With the broker stopped, remove the file: it is made again from the batches that are read at the next start.',
  producers:
    'With the broker stopped, remove the file: the state is made again from the batches. No record is affected.',
  checkpoint:
    'With the broker stopped, remove the file: the next start reads more of the log instead.',
} as const;
