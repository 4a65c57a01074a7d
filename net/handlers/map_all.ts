/** For handlers whose answers come at once for partitions of this shard, and later for those of others. */

/** Maps all elements; a promise only if one of the results is one. */
export function mapAll<T, R extends object>(
  list: readonly T[],
  map: (element: T) => R | Promise<R>,
): R[] | Promise<R[]> {
  let isLater = false;
  const results = list.map((element) => {
    const result = map(element);
    if (result instanceof Promise) isLater = true;
    return result;
  });
  return isLater ? Promise.all(results) : (results as R[]);
}
