// SPDX-License-Identifier: Apache-2.0
// Sorting and finding, for lists of anything.

export type Sortable = number | string | null | undefined;

const known = (value: Sortable): value is number | string => value !== null && value !== undefined;

const order = (a: number | string, b: number | string): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : names.compare(String(a), String(b));

/** So that `shop9` comes before `shop10`. */
const names = new Intl.Collator('en', { numeric: true });

/** What has no value comes last in both directions; equals stay in their order. */
export const sorted = <Row>(rows: readonly Row[], value: (row: Row) => Sortable, down: boolean): Row[] =>
  rows.map(row => ({ row, value: value(row) }))
    .sort((a, b) => known(a.value) && known(b.value)
      ? (down ? order(b.value, a.value) : order(a.value, b.value))
      : Number(known(b.value)) - Number(known(a.value)))
    .map(({ row }) => row);

/** Whether a text has all the words of what is looked for, in any order. */
export const finder = (wanted: string): ((text: string) => boolean) => {
  const words = wanted.toLowerCase().split(/\s+/).filter(word => word !== '');
  return text => {
    const low = text.toLowerCase();
    return words.every(word => low.includes(word));
  };
};
