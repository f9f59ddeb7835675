// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busy, distance, Film, mailboxes, NoFilm } from '../src/film.ts';
import { Force, hull } from '../src/force.ts';
import { shortened, spread } from '../src/labels.ts';
import { disc, line, packed, stamp } from '../src/pixels.ts';

const LINES = [
  { v: 1, t: 0, at: 1000, n: ['a@h', 'b@h'], g: [['one', [0, 1]]], d: [], m: 'messages', e: [[0, 1, 5, 50]] },
  { t: 200, n: ['c@h'], g: [['one', [0, 1]], ['two', [1, 2]]], e: [[0, 1, 1, 10], [2, 1, 7, 70]], s: [[2, 0.25]] },
  { t: 400, d: [2], l: [{ n: 0, q: [3, 0], x: [[1, 2, 4]], b: [['box', 9]], c: [[0, 0, 0], [1, 1, 0]] }] },
  { t: 600, l: [{ n: 0, q: [0, 1], x: [], b: [] }] }
];

const filmed = lines => Film.of(lines.map(line => JSON.stringify(line)).join('\n'));

test('a film knows at each frame what holds then', () => {
  const film = filmed(LINES);
  assert.deepEqual(film.names, ['a@h', 'b@h', 'c@h']);
  assert.deepEqual(film.frames.map(({ t, groups, down, counts }) => [t, groups.length, [...down], counts]),
    [[0, 1, [], 'messages'], [200, 2, [], 'messages'], [400, 2, [2], 'messages'], [600, 2, [2], 'messages']]);
  assert.deepEqual([...film.frames[1].shares], [[2, 0.25]]);
  assert.deepEqual(film.frames[3].loads[0].places, [[0, 0, 0], [1, 1, 0]]);
});

test('what is saved is a film of the same frames, from its own beginning', () => {
  const film = filmed(LINES);
  const again = Film.of(film.text());
  assert.deepEqual(again.names, film.names);
  assert.deepEqual(again.frames, film.frames);
  const short = new Film(2);
  LINES.forEach(line => short.add(line));
  assert.equal(short.gone, 2);
  const kept = Film.of(short.text());
  assert.equal(kept.at, 1400);
  assert.deepEqual(kept.frames.map(({ t, down }) => [t, [...down]]), [[0, [2]], [200, [2]]]);
  assert.deepEqual(kept.frames[1].loads, film.frames[3].loads);
});

test('a stream that begins anew goes on with the film, by its own numbers', () => {
  const film = filmed(LINES);
  film.add({ v: 1, t: 0, at: 3000, n: ['c@h', 'd@h', 'a@h'], g: [['two', [0, 1]]], d: [1], m: 'packets', e: [[0, 2, 4, 40]] });
  film.add({ t: 200, e: [[1, 0, 1, 1]], s: [[2, 0.5]], l: [{ n: 2, q: [1, 1], x: [], b: [] }] });
  assert.deepEqual(film.names, ['a@h', 'b@h', 'c@h', 'd@h']);
  assert.deepEqual(film.frames.slice(-2).map(({ t, edges, groups, down, shares }) => [t, edges, groups, [...down], [...shares]]),
    [[2000, [[2, 0, 4, 40]], [{ name: 'two', nodes: [2, 3] }], [3], []], [2200, [[3, 2, 1, 1]], [{ name: 'two', nodes: [2, 3] }], [3], [[0, 0.5]]]]);
  assert.deepEqual(film.frames.at(-1).loads[0].places, [[0, 0, 0], [1, 1, 0]]);
  assert.deepEqual(Film.of(film.text()).frames, film.frames);
  // At once, as when a page is told to look at another node.
  film.add({ v: 1, t: 0, at: 3201, n: [] });
  assert.equal(film.frames.at(-1).t, 2400);
});

test('a mailbox has a length in each frame in which its node was looked at', () => {
  const film = filmed([...LINES, { t: 800, l: [{ n: 0, q: [0, 0], x: [], b: [['other', 2], ['box', 4]] }] }]);
  assert.deepEqual(mailboxes(film.frames, 0), [
    { name: 'box', lengths: [undefined, undefined, 9, 0, 4], most: 9 }, { name: 'other', lengths: [undefined, undefined, 0, 0, 2], most: 2 }
  ]);
  assert.deepEqual(mailboxes(film.frames, 1), []);
});

test('no name stands upon another, and none beyond the picture', () => {
  const at = (x, y) => ({ x, y, width: 10, height: 10 });
  const put = (wanted, seen = []) => spread(wanted, seen, 100, 50);
  assert.deepEqual(put([[at(0, 0)], [at(5, 5), at(10, 0)], [at(15, 5)]]), [at(0, 0), at(10, 0), undefined]);
  assert.deepEqual(put([[at(-1, 0), at(95, 0), at(0, 45), at(90, 40)]]), [at(90, 40)]);
  // Upon what is to be seen only if there is no other place.
  assert.deepEqual(put([[at(0, 0), at(20, 0)], [at(5, 0)]], [at(2, 2)]), [at(20, 0), at(5, 0)]);
});

test('a long name keeps its beginning and its end', () => {
  assert.deepEqual([shortened('shop1', 5), shortened('atoll_bench_12', 8), shortened('áéíóúñ', 4)], ['shop1', 'atol…_12', 'áé…ñ']);
});

test('what is no recording is told with its line', () => {
  for (const [text, says] of [
    ['', /There is no frame/], ['{"t":0}', /line 1: It does not begin/], ['{"v":2,"t":0}', /line 1: It is of version 2/], ['{"v":1,"t":0}\nno', /line 2: it is no JSON/],
    ['{"v":1,"t":0}\n{"t":1,"e":[[1,2]]}', /line 2: A line of it is no frame/], ['{"v":1,"t":0,"n":[1]}', /line 1/], ['{"v":1,"t":0,"l":[{"n":0}]}', /line 1/], ['null', /line 1/],
    ['{"v":1,"t":1e999}', /line 1: A line of it is no frame/], ['{"v":1,"t":0}\n{"t":400}\n{"t":200}', /line 3: Its time goes backwards/]
  ]) assert.throws(() => Film.of(text), error => error instanceof NoFilm && says.test(error.message), text);
});

test('arcs are of some frames together', () => {
  const film = filmed(LINES);
  assert.deepEqual(film.flow(1, 5), { edges: [[0, 1, 6, 60], [2, 1, 7, 70]], seconds: 0.4 });
  assert.deepEqual(film.flow(1, 1), { edges: [[0, 1, 1, 10], [2, 1, 7, 70]], seconds: 0.2 });
  assert.deepEqual(film.flow(3, 2), { edges: [], seconds: 0.4 });
  assert.deepEqual(film.frames[0].edges[0], [0, 1, 5, 50]);
});

test('the busiest arc is 1, and less is less', () => {
  assert.equal(busy(Array.from({ length: 200_000 }, (_, i) => [0, 1, i, 1]), 'count').at(-1), 1);
  assert.deepEqual(busy([], 'count'), []);
  const shares = busy([[0, 1, 0, 5], [0, 2, 10, 5], [0, 3, 1000, 5]], 'count');
  assert.ok(shares[0] === 0 && shares[1] > 0.2 && shares[1] < 0.5 && shares[2] === 1);
});

test('a migration is as far as what it crosses', () => {
  assert.deepEqual([distance([0, 0, 0], [0, 0, 1]), distance([0, 0, 0], [0, 1, 0]), distance([0, 0, 0], [1, 2, 0]), distance(undefined, [0, 0, 0])], ['thread', 'core', 'chip', 'chip']);
});

test('nodes of a group are nearer to each other than to others, none is upon another, and all are in the picture', () => {
  const force = new Force();
  const groups = [0, 1, 2].map(g => ({ name: `g${g}`, nodes: Array.from({ length: 10 }, (_, i) => 9 * g + i) }));
  force.set(28, groups);
  for (let i = 0; i < 400; i += 1) force.step();
  assert.ok(force.rests);
  const far = (a, b) => Math.hypot(force.points[a].x - force.points[b].x, force.points[a].y - force.points[b].y);
  const mean = pairs => pairs.reduce((sum, [a, b]) => sum + far(a, b), 0) / pairs.length;
  const within = [], between = [];
  for (let a = 0; a < 28; a += 1) for (let b = 0; b < a; b += 1) (groups.some(({ nodes }) => nodes.includes(a) && nodes.includes(b)) ? within : between).push([a, b]);
  assert.ok(mean(within) < mean(between));
  assert.ok(Math.min(...within.map(([a, b]) => far(a, b))) > 0.01);
  assert.ok(force.points.every(({ x, y }) => x >= 0 && x <= 1 && y >= 0 && y <= 1));
  const again = new Force();
  again.set(28, groups);
  for (let i = 0; i < 400; i += 1) again.step();
  assert.deepEqual(again.points, force.points);
});

test('a hull has no point outside, and no more corners than it takes', () => {
  assert.deepEqual(hull([{ x: 0, y: 0 }, { x: 1, y: 0 }, { x: 1, y: 1 }, { x: 0, y: 1 }, { x: 0.5, y: 0.5 }]).length, 4);
  assert.deepEqual(hull([{ x: 0, y: 0 }]), [{ x: 0, y: 0 }]);
  assert.deepEqual(hull([]), []);
});

const WHITE = packed('#ffffff');
const BLACK = packed('#000000');
const blank = () => ({ width: 40, at: new Int32Array(1600).fill(WHITE) });
/** How dark each pixel that is not blank is, from 0 to 255, by where it is. */
const dark = ({ width, at }) => new Map([...at].flatMap((pixel, i) => pixel === WHITE ? [] : [[`${i % width} ${Math.floor(i / width)}`, 255 - (pixel & 255)]]));

test('a colour is the pixel that a canvas has for it', () => assert.deepEqual([...new Uint8Array(new Int32Array([packed('#0b62c4')]).buffer)], [0x0b, 0x62, 0xc4, 0xff]));

test('a line goes from one end to the other, one pixel wide, whichever way', () => {
  for (const [x0, y0, x1, y1] of [[5, 5, 25, 5], [25, 5, 5, 5], [5, 5, 5, 25], [5, 25, 5, 5], [4, 6, 30, 17], [30, 17, 4, 6], [6, 30, 12, 3], [7, 7, 7, 7], [3, 3, 20, 20]]) {
    const pixels = blank();
    line(pixels, x0, y0, x1, y1, BLACK);
    const [wide, high] = [Math.abs(x1 - x0), Math.abs(y1 - y0)];
    const by = new Map();
    for (const [where, depth] of dark(pixels)) {
      const [x, y] = where.split(' ').map(Number);
      const off = Math.abs((x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)) / (Math.hypot(wide, high) || 1);
      assert.ok(off < 1.01 && x >= Math.min(x0, x1) - 1 && x <= Math.max(x0, x1) + 1 && y >= Math.min(y0, y1) - 1 && y <= Math.max(y0, y1) + 1, `${where} of ${[x0, y0, x1, y1]}`);
      const place = wide >= high ? x : y;
      by.set(place, (by.get(place) ?? 0) + depth);
    }
    assert.equal(by.size, Math.max(wide, high) + 1);
    for (const sum of by.values()) assert.ok(Math.abs(sum - 255) <= 2, `${sum} of ${[x0, y0, x1, y1]}`);
  }
});

test('half of a colour over another is the middle of both, in red, green and blue', () => {
  const pixels = { width: 8, at: new Int32Array(64).fill(packed('#20c0ff')) };
  line(pixels, 2, 2.5, 2, 2.5, packed('#e04001'));
  const [r, g, b, a] = new Uint8Array(pixels.at.buffer, 4 * (2 * 8 + 2));
  assert.ok([[r, 0x80], [g, 0x80], [b, 0x80], [a, 255]].every(([is, like]) => Math.abs(is - like) <= 1), `${[r, g, b, a]}`);
});

test('a disc has its area, and equal parts of its colours from the top on', () => {
  for (const radius of [2.5, 3.4, 6, 9]) {
    const pixels = blank();
    stamp(pixels, 20, 20, disc(radius), [BLACK]);
    const area = [...dark(pixels).values()].reduce((sum, depth) => sum + depth / 255, 0);
    assert.ok(Math.abs(area / (Math.PI * radius * radius) - 1) < 0.12, `${area} of ${radius}`);
  }
  const halves = blank();
  stamp(halves, 20, 20, disc(6), [packed('#ff0000'), packed('#0000ff')]);
  const at = (x, y) => halves.at[y * halves.width + x];
  assert.deepEqual([at(23, 20), at(17, 20)], [packed('#ff0000'), packed('#0000ff')]);
});
