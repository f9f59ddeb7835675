// SPDX-License-Identifier: Apache-2.0
// Light and dark: as the system has it, until somebody chooses. And the colours and
// dashes of the curves, which the stylesheet cannot reach.

export type Look = 'light' | 'dark';

const KEPT = 'atoll-look';
const dark = matchMedia('(prefers-color-scheme: dark)');
const root = document.documentElement;
const told = new Set<() => void>();

// Where a page has no storage, the choice lasts until it is closed.
const kept = (): string | null => { try { return localStorage.getItem(KEPT); } catch { return null; } };
const keep = (look: Look): void => { try { localStorage.setItem(KEPT, look); } catch { /* as said */ } };

export const look = (): Look => (root.dataset.look ?? (dark.matches ? 'dark' : 'light')) === 'dark' ? 'dark' : 'light';

export const choose = (to: Look): void => {
  root.dataset.look = to;
  keep(to);
  told.forEach(tell => tell());
};

export const onLook = (tell: () => void): (() => void) => {
  told.add(tell);
  return () => told.delete(tell);
};

export const begin = (): void => {
  const before = kept();
  if (before === 'light' || before === 'dark') root.dataset.look = before;
  dark.addEventListener('change', () => told.forEach(tell => tell()));
};

// Each has a contrast of at least 3.3 with the paper, and no two of a scheme are alike
// to a reader with any of the three kinds of colour blindness.
const CURVES: Record<Look, readonly string[]> = {
  light: ['#0b62c4', '#c24a06', '#00796b', '#621809', '#36295c', '#7f24fb', '#c768b8', '#aa884f'],
  dark: ['#62aeff', '#ff9c4f', '#36cdaa', '#ce3148', '#d5d9fe', '#7948fc', '#a94fa4', '#f7e20b']
};
const DASHES: readonly number[][] = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4], [9, 3, 2, 3, 2, 3], [1, 5]];

export interface Curve { color: string; dash: number[] }

export const CURVE_COUNT = DASHES.length;

export const curve = (at: number): Curve => ({ color: CURVES[look()][at % CURVE_COUNT] ?? '', dash: DASHES[at % CURVE_COUNT] ?? [] });

/** A colour of the stylesheet, as it is now. */
export const ink = (name: string): string => getComputedStyle(root).getPropertyValue(name).trim();
