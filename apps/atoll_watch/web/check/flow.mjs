// SPDX-License-Identifier: Apache-2.0
// Made-up traffic, as the watch would stream and record it: nodes in groups that overlap, most of it within groups.

/** The same numbers each time. */
const drawn = seed => () => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed / 2147483648;
};

/** The node that is lost, and the frame that says so first. */
export const LOST = 1;
const LOST_AT = 8;

/** Lines of so many frames: nodes with these names, so many to a group, of which the last one is in the next group too. */
export const frames = (names, perGroup, edges, count, load) => {
  const draw = drawn(7);
  const groups = [];
  for (let first = 0; first < names.length; first += perGroup) {
    groups.push([`group ${groups.length + 1}`, Array.from({ length: perGroup + 1 }, (_, i) => first + i).filter(node => node < names.length)]);
  }
  const pairs = Array.from({ length: edges }, (_, i) => {
    const from = i % names.length;
    const near = Math.floor(from / perGroup) * perGroup + Math.floor(draw() * perGroup);
    const to = draw() < 0.6 ? near % names.length : Math.floor(draw() * names.length);
    return [from, to === from ? (to + 1) % names.length : to];
  });
  return Array.from({ length: count }, (_, t) => ({
    ...t === 0 ? { v: 1, at: Date.UTC(2026, 0, 1), n: names, g: groups, d: [], m: 'messages' } : {},
    ...t === LOST_AT ? { d: [LOST] } : {},
    t: t * 200,
    e: pairs.map(([from, to], i) => [from, to, Math.floor(Math.exp(8 * draw()) * (1 + Math.sin(t / 5 + i))), Math.floor(1000 * draw())]),
    ...load === undefined || load === LOST && t >= LOST_AT ? {} : { l: [{
      n: load, q: Array.from({ length: 24 }, () => Math.floor(9 * draw() ** 2)),
      x: Array.from({ length: 9 }, () => [1 + Math.floor(24 * draw()), 1 + Math.floor(24 * draw()), 1 + Math.floor(9 * draw())]),
      b: [['orders', Math.floor(200 + 200 * Math.sin(t / 6))], ['stock', Math.floor(50 * draw())], ['<script>alert(1)</script>', 3]],
      ...t === 0 ? { c: Array.from({ length: 24 }, (_, i) => [Math.floor(i / 12), Math.floor(i / 2), i % 2]) } : {}
    }] }
  }));
};
