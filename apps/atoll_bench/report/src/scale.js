// SPDX-License-Identifier: Apache-2.0
// Axes of our own on the library's linear ones: a logarithmic axis has its
// logarithms on it, so that its ticks stand exactly where we want them.

const DECADES = [1, 2, 5];

const steps = (low, high, wanted) => {
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= raw * 0.999);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
};

const powers = (low, high, wanted) => {
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  const within = list => list.filter(v => v >= low * 0.999 && v <= high * 1.001);
  const decades = Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
  const fine = within(decades.flatMap(d => DECADES.map(k => k * d)));
  if (fine.length <= wanted) return fine.length > 1 ? fine : [low, ...fine, high].filter((v, i, all) => i === 0 || v > all[i - 1] * 1.02);
  const coarse = within(decades);
  const every = Math.ceil(coarse.length / wanted);
  return coarse.filter((_, i) => i % every === 0);
};

const linear = (values, zero, wanted) => {
  const high = Math.max(...values, zero ? 0 : -Infinity);
  const low = Math.min(...values, zero ? 0 : Infinity);
  const ticks = steps(low, high > low ? high : low + 1, wanted);
  return { to: v => v, from: v => v, min: ticks[0], max: ticks[ticks.length - 1], ticks };
};

const log = (values, wanted, room) => {
  const positive = values.filter(v => v > 0);
  const low = Math.min(...positive) / room;
  const high = Math.max(...positive) * room;
  return {
    to: v => Math.log10(Math.max(v, low / 10)), from: v => 10 ** v,
    min: Math.log10(low), max: Math.log10(high), ticks: powers(low, high, wanted)
  };
};

// Where the values of an axis go: `to` and `from` the library's numbers.
export const scaleOf = (kind, values, { zero = true, wanted = 5, room = 1.15 } = {}) =>
  values.length === 0 ? linear([0, 1], true, wanted)
    : kind === 'log' ? log(values, wanted, room)
      : linear(values, zero, wanted);

// The swept values themselves are the ticks, with some room at either side.
export const sweepScale = (kind, ticks) => {
  if (kind === 'category') return { to: v => v, from: v => v, min: -0.5, max: ticks.length - 0.5, ticks: ticks.map((_, i) => i) };
  const to = kind === 'log' ? Math.log10 : v => v;
  const from = kind === 'log' ? v => 10 ** v : v => v;
  const room = (to(ticks[ticks.length - 1]) - to(ticks[0])) * 0.05 || 0.5;
  return { to, from, min: to(ticks[0]) - room, max: to(ticks[ticks.length - 1]) + room, ticks };
};
