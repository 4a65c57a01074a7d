/** For requests that name several groups. */

/** Asked for at the same time; between so many and the next, others have their turn. */
const groupsAtOnce = 100;

/** The answers of all groups in the order of the list. A frame may name a million of them. */
export async function eachGroup<T, R>(
  list: readonly T[],
  ask: (one: T) => Promise<R>,
): Promise<R[]> {
  const answers: R[] = [];
  for (let from = 0; from < list.length; from += groupsAtOnce) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve));
    answers.push(...(await Promise.all(list.slice(from, from + groupsAtOnce).map(ask))));
  }
  return answers;
}
