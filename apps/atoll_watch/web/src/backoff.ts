// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next try: a second, twice as long after each failure, half
// a minute at most, and up to a quarter less by chance, so that pages that have lost the
// same server do not come back all at once.

const FIRST_MS = 1000;
const MOST_MS = 30_000;

/** After so many failures in a row, the first being 1; `chance` is of [0, 1). */
export const delay = (failures: number, chance: number): number => {
  const full = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 30));
  return Math.round(full * (1 - chance / 4));
};
