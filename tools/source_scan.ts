/**
 * Reads out of a TypeScript file what the house rules need: its imports, its exports and its string
 * literals. TypeScript 7 has no parser that a script could call, and these few facts do not need one: once
 * comments and the insides of strings are blanked, the statements are regular enough.
 */

/** An `import … from`, `export … from`, `import '…'` or `import('…')`. */
export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** The names taken, as the other module calls them; '*' stands for all of them. */
  readonly names: readonly string[];
}

/** A declaration with `export`. `isType` only if it leaves nothing at run time. */
export interface Export {
  readonly name: string;
  readonly line: number;
  readonly isType: boolean;
}

export interface Scan {
  /** The text with comments and the insides of strings and regular expressions blanked; lines and columns stand. */
  readonly code: string;
  readonly imports: readonly Import[];
  readonly exports: readonly Export[];
  /** The contents of all string literals and of templates without substitutions. */
  readonly strings: readonly string[];
}

const declaration =
  /^export\s+(?:declare\s+)?(default\b|(?:async\s+)?function\b\*?|const\b|let\b|class\b|interface\b|type\b)\s*([\w$]+)/gm;
const exportList = /^export\s+(type\s+)?\{([^}]*)\}(?!\s*from)/gm;
const importFrom =
  /\b(?:import|export)\s+((?:type\s+)?(?:[\w$]+\s*,?\s*)?(?:\*\s*(?:as\s+[\w$]+)?|\{[^}]*\})?)\s*from\s*(['"])/g;
const importOther = /\bimport\s*\(?\s*(['"])/g;

/** Scans one file. */
export function scan(text: string): Scan {
  const { code, literals } = blank(text);
  const strings = [...literals.values()];
  const imports: Import[] = [];
  for (const match of code.matchAll(importFrom)) {
    const specifier = literals.get(match.index + match[0].length - 1);
    const names = namesIn(match[1] as string);
    if (specifier !== undefined)
      imports.push({ specifier, line: lineAt(code, match.index), names });
  }
  for (const match of code.matchAll(importOther)) {
    const specifier = literals.get(match.index + match[0].length - 1);
    if (specifier !== undefined) {
      imports.push({ specifier, line: lineAt(code, match.index), names: ['*'] });
    }
  }
  return { code, imports, exports: exportsIn(code), strings };
}

function exportsIn(code: string): Export[] {
  const exports: Export[] = [];
  for (const match of code.matchAll(declaration)) {
    const isType = match[1] === 'interface' || match[1] === 'type';
    const name = match[1] === 'default' ? 'default' : (match[2] as string);
    exports.push({ name, line: lineAt(code, match.index), isType });
  }
  for (const match of code.matchAll(exportList)) {
    for (const part of (match[2] as string).split(',')) {
      const name = part.trim().split(/\s+/).at(-1) ?? '';
      const isType = match[1] !== undefined || /^\s*type\s/.test(part);
      if (name !== '') exports.push({ name, line: lineAt(code, match.index), isType });
    }
  }
  return exports;
}

/** The names in an import clause: `type { A, b as c }` takes A and b; `* as x` and a default import take all. */
function namesIn(clause: string): string[] {
  const list = /\{([^}]*)\}/.exec(clause);
  if (list === null) return ['*'];
  return (list[1] as string)
    .split(',')
    .map((part) => part.trim().replace(/^type\s+/, ''))
    .filter((part) => part !== '')
    .map((part) => part.split(/\s+/)[0] as string);
}

/** The number, from 1, of the line in which `index` lies. */
export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1))
    line += 1;
  return line;
}

interface Blanked {
  readonly code: string;
  /** Contents of string literals by the position of their opening quote. */
  readonly literals: Map<number, string>;
}

/** Where a token that begins at `at` ends, and whether it is blanked and a literal. */
type Token = { readonly end: number; readonly kind: 'comment' | 'string' | 'regex' };

/** Blanks comments, strings, templates (not the expressions in them) and regular expressions. */
function blank(text: string): Blanked {
  const literals = new Map<number, string>();
  const out = text.split('');
  const erase = (from: number, to: number): void => {
    for (let at = from; at < to && at < out.length; at += 1) if (out[at] !== '\n') out[at] = ' ';
  };
  /** For each open template: how many braces are open in the expression that we are in. */
  const templates: number[] = [];
  const template = (start: number): number => {
    const end = templateEnd(text, start);
    erase(start, end.at);
    if (end.isOpen) templates.push(0);
    return end.isOpen ? end.at + 2 : end.at + 1;
  };
  let at = 0;
  while (at < text.length) {
    const token = tokenAt(text, out, at);
    if (token !== null) {
      if (token.kind === 'string') literals.set(at, text.slice(at + 1, token.end - 1));
      if (token.kind === 'comment') erase(at, token.end);
      else erase(at + 1, token.end - 1);
      at = token.end;
      continue;
    }
    const character = text[at];
    const depth = templates.at(-1);
    if (character === '`') {
      const next = template(at + 1);
      if (templates.length === 0 || text[next - 1] === '`')
        literals.set(at, text.slice(at + 1, next - 1));
      at = next;
    } else if (character === '}' && depth === 0) {
      templates.pop();
      at = template(at + 1);
    } else {
      if (depth !== undefined && character === '{') templates[templates.length - 1] = depth + 1;
      if (depth !== undefined && character === '}') templates[templates.length - 1] = depth - 1;
      at += 1;
    }
  }
  return { code: out.join(''), literals };
}

/** Where the text of a template stops: at its closing backtick, or at a `${` (then it is open). */
function templateEnd(text: string, start: number): { at: number; isOpen: boolean } {
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '`') return { at, isOpen: false };
    else if (text[at] === '$' && text[at + 1] === '{') return { at, isOpen: true };
  }
  return { at: text.length, isOpen: false };
}

function tokenAt(text: string, out: readonly string[], at: number): Token | null {
  const character = text[at];
  const next = text[at + 1];
  if (character === '/' && next === '/') {
    const end = text.indexOf('\n', at);
    return { end: end === -1 ? text.length : end, kind: 'comment' };
  }
  if (character === '/' && next === '*') {
    const end = text.indexOf('*/', at + 2);
    return { end: end === -1 ? text.length : end + 2, kind: 'comment' };
  }
  if (character === "'" || character === '"') {
    return { end: closing(text, at, character), kind: 'string' };
  }
  if (character === '/' && startsRegex(out, at)) return { end: regexEnd(text, at), kind: 'regex' };
  return null;
}

function closing(text: string, start: number, quote: string): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === quote || text[at] === '\n') return at + 1;
  }
  return text.length;
}

function regexEnd(text: string, start: number): number {
  let inClass = false;
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text[at];
    if (character === '\\') at += 1;
    else if (character === '\n') return at;
    else if (character === '[') inClass = true;
    else if (character === ']') inClass = false;
    else if (character === '/' && !inClass) return at + 1;
  }
  return text.length;
}

/** A slash divides only after a value; after anything else it begins a regular expression. */
function startsRegex(out: readonly string[], at: number): boolean {
  let before = at - 1;
  while (before >= 0 && /\s/.test(out[before] as string)) before -= 1;
  if (before < 0) return true;
  if (/[)\]}'"`]/.test(out[before] as string)) return false;
  if (!/[\w$]/.test(out[before] as string)) return true;
  let start = before;
  while (start > 0 && /[\w$]/.test(out[start - 1] as string)) start -= 1;
  const word = out.slice(start, before + 1).join('');
  return /^(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/.test(word);
}
