// SPDX-License-Identifier: Apache-2.0
// How numbers, times and spans of time stand on the page. A value and its unit are
// kept together by a space that no line breaks at.
import type { Unit } from './api.js';

const SPACE = '\u00a0';

/** What stands where nothing is known. */
export const NOTHING = '–';

const LARGE: [number, string][] = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

const digits = (n: number, most: number): string =>
  n.toLocaleString('en', Math.abs(n) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: most });

/** Three digits and a power of a thousand: `12.3 M`. A count below ten thousand stands in full. */
const scaled = (n: number, unit: string, full: number, more = 0): string => {
  const [size, letter] = Math.abs(n) < full ? [1, ''] : LARGE.find(([size]) => Math.abs(n) >= size * 0.9995) ?? [1, ''];
  const suffix = letter + unit;
  return digits(n / size, 3 + more) + (suffix === '' ? '' : SPACE + suffix);
};

// `more` digits than usual, or units of a span of time.
export const count = (n: number, more = 0): string => Number.isInteger(n) && Math.abs(n) < 1e6 ? n.toLocaleString('en') : scaled(n, '', 1e4, more);
export const bytes = (n: number, more = 0): string => scaled(n, 'B', 1e3, more);
export const percent = (n: number, more = 0): string => (n * 100).toFixed(1 + more) + SPACE + '%';

const SPANS: [number, string][] = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1000, 's']];

/** A span of milliseconds in its two largest units: `3 h 12 min`. */
export const span = (ms: number, more = 0): string => {
  const at = SPANS.findIndex(([size]) => ms >= size);
  const large = SPANS[at];
  if (large === undefined) return digits(ms, 3 + more) + SPACE + 'ms';
  if (large[1] === 's') return digits(ms / 1000, (ms < 10_000 ? 2 : 3) + more) + SPACE + 's';
  let rest = ms;
  return SPANS.slice(at, at + 2 + more).flatMap(([size, letter], i) => {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    return whole === 0 && i > 0 ? [] : [whole + SPACE + letter];
  }).join(SPACE);
};

const micros = (n: number, more: number): string => n < 1000 ? digits(n, 3 + more) + SPACE + 'µs' : span(n / 1000, more);

/** A value of a metric. */
export const value = (n: number | null | undefined, unit: Unit, more = 0): string => {
  if (n === null || n === undefined || !Number.isFinite(n)) return NOTHING;
  switch (unit) {
    case 'bytes': return bytes(n, more);
    case 'ratio': return percent(n, more);
    case 'milliseconds': return span(n, more);
    case 'microseconds': return micros(n, more);
    default: return count(n, more);
  }
};

/** What a counter gains in a second. That of a time is a share: a second has a thousand milliseconds. */
export const rate = (n: number | null | undefined, unit: Unit, more = 0): string => {
  if (n === null || n === undefined || !Number.isFinite(n)) return NOTHING;
  switch (unit) {
    case 'bytes': return bytes(n, more) + '/s';
    case 'milliseconds': return percent(n / 1000, more);
    case 'microseconds': return percent(n / 1e6, more);
    default: return (n === 0 ? '0' : scaled(n, '', 1e4, more)) + '/s';
  }
};

const MOST_MORE = 5;

const short = (text: string): string => text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');

/** The marks of an axis, with as many digits as say each of them in full. */
export const marks = (at: readonly number[], write: (n: number, more: number) => string): string[] => {
  let more = 0;
  while (more < MOST_MORE && at.some(n => short(write(n, more)) !== short(write(n, MOST_MORE)))) more += 1;
  return at.map(n => write(n, more));
};

const two = (n: number): string => String(n).padStart(2, '0');

const day = (at: Date): string => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;

/** A time of the day, with its day unless that is today: `12:03:05`, `2026-01-31 12:03:05`. */
export const time = (ms: number, now: number): string => {
  const at = new Date(ms);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return day(at) === day(new Date(now)) ? clock : `${day(at)} ${clock}`;
};

/** `1 node`, `2 nodes`. */
export const plural = (n: number, one: string, many: string = one + 's'): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
