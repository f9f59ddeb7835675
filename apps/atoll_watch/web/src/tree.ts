// SPDX-License-Identifier: Apache-2.0
// A supervision tree as rows: which are shown, and what the arrow keys do.
import type { Supervised } from './api.js';

export interface Row {
  /** Its place in the tree: the numbers of the children that lead to it. */
  path: string;
  parent: string | undefined;
  depth: number;
  /** Among its siblings, from 1. */
  place: number;
  of: number;
  entry: Supervised;
}

/** What is open is shown with its children. */
export const rowsOf = (items: readonly Supervised[], open: ReadonlySet<string>): Row[] => {
  const under = (entries: readonly Supervised[], parent: string | undefined, depth: number): Row[] => entries.flatMap((entry, i) => {
    const path = parent === undefined ? String(i) : `${parent}.${i}`;
    const row: Row = { path, parent, depth, place: i + 1, of: entries.length, entry };
    return open.has(path) ? [row, ...under(entry.children, path, depth + 1)] : [row];
  });
  return under(items, undefined, 1);
};

/** Every entry that has children, down to a depth. */
export const opened = (items: readonly Supervised[], depth: number, parent?: string): string[] => depth === 0 ? [] : items.flatMap((entry, i) => {
  const path = parent === undefined ? String(i) : `${parent}.${i}`;
  return entry.children.length === 0 ? [] : [path, ...opened(entry.children, depth - 1, path)];
});

export type Step = { focus: string } | { open: string } | { close: string };

/** As trees are walked everywhere: right opens and goes in, left closes and goes out. */
export const step = (rows: readonly Row[], at: string, key: string, open: ReadonlySet<string>): Step | undefined => {
  const i = rows.findIndex(({ path }) => path === at);
  const row = rows[i];
  if (row === undefined) return undefined;
  const to = (row: Row | undefined): Step | undefined => row && { focus: row.path };
  switch (key) {
    case 'ArrowDown': return to(rows[i + 1]);
    case 'ArrowUp': return to(rows[i - 1]);
    case 'Home': return to(rows[0]);
    case 'End': return to(rows[rows.length - 1]);
    case 'ArrowRight': return row.entry.children.length === 0 ? undefined : open.has(at) ? to(rows[i + 1]) : { open: at };
    case 'ArrowLeft': return open.has(at) ? { close: at } : row.parent === undefined ? undefined : { focus: row.parent };
    default: return undefined;
  }
};
