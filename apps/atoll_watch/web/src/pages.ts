// SPDX-License-Identifier: Apache-2.0
// A list that comes in pages, the last ones first, while new ones come in front of it.

/** What is new comes first; of two with one number the newer one is right. */
export const merged = <Item extends { id: number }>(fresh: readonly Item[], paged: readonly Item[]): Item[] => {
  const seen = new Set<number>();
  return [...fresh, ...paged].filter(({ id }) => !seen.has(id) && seen.add(id));
};
