// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busiest, charts, MOST_CURVES } from '../src/explore.ts';
import { closest, laidOut, nearest } from '../src/layout.ts';
import { href, joined, list, parse } from '../src/route.ts';
import { query } from '../src/api.ts';
import { aligned, pointAt, sparkline } from '../src/series.ts';
import { between, peers, rates } from '../src/topology.ts';

test('an address leads to the view that wrote it, whatever the names are', () => {
  for (const of of ['', 'shop@10.0.0.7', '<script>@h', 'a/b?c#d%41@h', 'שרת@מארח', '100%@h']) {
    const params = { q: 'a&b=c #?', w: 'day' };
    assert.deepEqual(parse(href('node', of, params)), { view: 'node', of, params });
  }
  assert.equal(href('overview'), '#/');
  assert.equal(href('alarms', '', { show: '' }), '#/alarms');
});

test('an address that nobody wrote leads to the overview', () => {
  for (const hash of ['', '#', '#/', '#/nowhere', '#token', '#/%', '#/constructor']) assert.equal(parse(hash).view, 'overview');
  assert.equal(parse('#/node/%E0%A4%A').of, '%E0%A4%A');
});

test('a list in one parameter keeps its commas apart', () => {
  for (const each of [[], ['a'], ['a,b', 'c%2C', 'd']]) {
    assert.deepEqual(list(joined(each)), each);
    assert.deepEqual(list(parse(href('metrics', '', { m: joined(each) })).params.m), each);
  }
});

test('a question leaves out what is empty, and escapes the rest', () => {
  assert.equal(query({}), '');
  assert.equal(query({ a: '', b: undefined, c: [], limit: 0, node: ['a@h', 'x,y'] }), '?limit=0&node=a%40h,x%2Cy');
});

test('series on one axis say nothing where only others were measured, and have holes', () => {
  const { times, curves } = aligned([[[0, 1, 0, 2], [10_000, 2, 1, 3], [60_000, 3, 3, 3]], [[5000, 7, 7, 7]]], 20_000);
  assert.deepEqual(times, [0, 5, 10, 35, 60]);
  assert.deepEqual(curves[0].average, [1, undefined, 2, null, 3]);
  assert.deepEqual(curves[0].max, [2, undefined, 3, null, 3]);
  assert.deepEqual(curves[1].average, [undefined, 7, undefined, undefined, undefined]);
});

test('a sparkline is lifted over a hole', () => {
  assert.equal(sparkline([[0, 0, 0, 0], [10, 10, 0, 0], [50, 5, 0, 0]], 0, 100, 20, 100, 12), 'M0.0 11.0L10.0 1.0M50.0 6.0');
  assert.equal(sparkline([[0, 3, 3, 3]], 0, 100, 20, 100, 12), 'M0.0 6.0');
  assert.equal(sparkline([], 0, 100, 20, 100, 12), '');
});

test('the point at a time is the last one that has begun', () => {
  const points = [[10, 1, 1, 1], [20, 2, 2, 2]];
  assert.equal(pointAt(points, 9), undefined);
  assert.equal(pointAt(points, 10), points[0]);
  assert.equal(pointAt(points, 19), points[0]);
  assert.equal(pointAt(points, 99), points[1]);
});

test('no more curves are drawn than can be told apart: those with the highest peaks', () => {
  const metrics = [{ name: 'load' }];
  const series = Array.from({ length: 12 }, (_, i) => ({ node: `n${i}`, metric: 'load', label: null, points: [[0, 1, 1, i]] }));
  const [chart] = charts(['load', 'gone'], metrics, [...series, { node: 'x', metric: 'load', label: null, points: [] }]);
  assert.equal(chart.series.length, MOST_CURVES);
  assert.equal(chart.series[0].node, 'n4');
  assert.equal(chart.omitted, 12 - MOST_CURVES);
});

test('the busiest nodes are up', () => {
  const node = (name, utilisation, state = 'up') => ({ node: name, state, figures: { utilisation } });
  assert.deepEqual(busiest([node('a', 0.1), node('b', 0.9, 'silent'), node('c', 0.5)]), ['c', 'a']);
});

test('boxes of groups do not touch each other, and hold their nodes', () => {
  const groups = Array.from({ length: 9 }, (_, i) => ({ name: `g${i}`, nodes: Array.from({ length: 1 + i * 13 }, (_, n) => `n${i}_${n}`) }));
  for (const [width, cell] of [200, 336, 1500].flatMap(width => [[width, { width: 24, height: 24 }], [width, { width: 150, height: 30 }]])) {
    const { boxes, dots, height } = laidOut(groups, width, cell);
    assert.equal(dots.length, groups.reduce((sum, { nodes }) => sum + nodes.length, 0));
    boxes.forEach((a, i) => {
      assert.ok(a.x + a.width <= width && a.y + a.height <= height);
      for (const b of boxes.slice(i + 1)) assert.ok(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y);
    });
    for (const { x, y } of dots) assert.ok(boxes.some(box => box.x < x && x < box.x + box.width && box.y < y && y < box.y + box.height));
  }
});

test('an arrow leads to the nearest dot that way', () => {
  const { dots } = laidOut([{ name: 'g', nodes: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] }], 150, { width: 24, height: 24 });
  assert.equal(nearest(dots, 0, 'ArrowRight'), 1);
  assert.equal(nearest(dots, 0, 'ArrowLeft'), undefined);
  assert.equal(dots[nearest(dots, 0, 'ArrowDown')].x, dots[0].x);
  assert.equal(nearest(dots, 0, 'Enter'), undefined);
});

test('a connection is drawn between the nearest places of its nodes', () => {
  const at = (x, y) => ({ node: 'n', x, y });
  assert.deepEqual(closest([at(0, 0), at(10, 0)], [at(50, 0), at(12, 1)]), [at(10, 0), at(12, 1)]);
  assert.equal(closest([], [at(0, 0)]), undefined);
});

const LINK = { kind: 'stock', bytes_there: 100, bytes_back: 10, rtt_us: null };
const TOPOLOGY = {
  at_ms: 1000,
  nodes: [{ node: 'a', groups: ['x'] }, { node: 'g', groups: ['x', 'y'] }, { node: 'b', groups: ['y'] }, { node: 'f', groups: [] }],
  groups: [{ name: 'x' }, { name: 'y' }],
  links: [{ from: 'a', to: 'g', ...LINK }, { from: 'a', to: 'b', ...LINK }, { from: 'a', to: 'f', ...LINK }], circuits: []
};

test('groups hang together by the nodes of both, and by links that lead from one to the other', () => {
  assert.deepEqual(between(TOPOLOGY), [{ a: 'x', b: 'y', links: 1, gateways: ['g'] }]);
});

test('a connection is one of both its ends', () => {
  const of = peers(TOPOLOGY);
  assert.deepEqual([...of.get('a')], ['g', 'b', 'f']);
  assert.deepEqual([...of.get('b')], ['a']);
});

test('a rate takes two answers of one life of a connection', () => {
  const later = { ...TOPOLOGY, at_ms: 3000, links: [{ from: 'a', to: 'g', ...LINK, bytes_there: 300, bytes_back: 5 }, { from: 'n', to: 'm', ...LINK }] };
  assert.equal(rates(undefined, later).size, 0);
  assert.equal(rates(TOPOLOGY, TOPOLOGY).size, 0);
  assert.deepEqual([...rates(TOPOLOGY, later).values()], [{ there: 100, back: null }, { there: null, back: null }]);
});
