// SPDX-License-Identifier: Apache-2.0
// Which rows of a long list are to be drawn: those in view, and some beside them.

export interface Rows {
  /** The first row that is drawn, and the first one after it that is not. */
  from: number;
  to: number;
  /** Pixels that stand for the rows above and below. */
  above: number;
  below: number;
}

/** A list that is no longer than this is drawn whole: it is found and printed whole. */
const SHORT = 60;

/** Of `count` rows, each `height` high, what shows of `top` to `top + seen`. */
export const rowsIn = (count: number, height: number, top: number, seen: number, beside = 6): Rows => {
  if (count <= SHORT) return { from: 0, to: count, above: 0, below: 0 };
  const from = Math.min(Math.max(0, Math.floor(top / height) - beside), count);
  const to = Math.max(from, Math.min(count, Math.ceil((top + seen) / height) + beside));
  return { from, to, above: from * height, below: (count - to) * height };
};

/** Where a key leads to in a grid of `count` cells, `across` to a row; undefined if it leads nowhere. */
export const moved = (key: string, at: number, count: number, across = 1, page = 10): number | undefined => {
  const to = ((): number | undefined => {
    switch (key) {
      case 'ArrowDown': return at + across;
      case 'ArrowUp': return at - across;
      case 'ArrowRight': return across > 1 ? at + 1 : undefined;
      case 'ArrowLeft': return across > 1 ? at - 1 : undefined;
      case 'PageDown': return Math.min(count - 1, at + across * page);
      case 'PageUp': return Math.max(0, at - across * page);
      case 'Home': return 0;
      case 'End': return count - 1;
      default: return undefined;
    }
  })();
  return to === undefined || to < 0 || to >= count ? undefined : to;
};
