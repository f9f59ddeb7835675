// SPDX-License-Identifier: Apache-2.0
// How numbers stand on axes and in the notes at the pointer.

const trim = text => text.includes('.') ? text.replace(/\.?0+$/, '') : text;
const digits = (n, d) => trim(n.toPrecision(d).includes('e') ? String(Math.round(n)) : n.toPrecision(d));

const scaled = (n, steps, d) => {
  const [size, unit] = steps.find(([size]) => Math.abs(n) >= size * 0.9999) ?? steps[steps.length - 1];
  return digits(n / size, d) + unit;
};

const LARGE = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const TIMES = [[1e9, ' s'], [1e6, ' ms'], [1e3, ' µs'], [1, ' ns']];

const brief = n => {
  if (n === 0) return '0';
  const size = Math.abs(n);
  if (size >= 1e3) return scaled(n, LARGE, 4);
  if (size < 1e-4) return n.toExponential(1);
  return digits(n, 4);
};

const long = n => {
  if (n === 0) return '0';
  const size = Math.abs(n);
  if (size < 1e-4 || size >= 1e15) return n.toExponential(3);
  if (size >= 1000) return Math.round(n).toLocaleString('en');
  return digits(n, 4);
};

const share = n => digits(n * 100, 6) + ' %';
const time = d => n => n === 0 ? '0' : scaled(n, TIMES, d);

// For an axis.
export const tick = { number: brief, time: time(3), share, seconds: n => brief(n) };
// For a value.
export const value = { number: long, time: time(4), share, seconds: n => digits(n, 4) + ' s' };
