// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosen, families } from '../src/nodes.ts';
import { wants } from '../src/notifications.ts';
import { merged } from '../src/pages.ts';
import { moved, rowsIn } from '../src/rows.ts';
import { finder, sorted } from '../src/sort.ts';
import { opened, rowsOf, step } from '../src/tree.ts';

test('the rows that are drawn are those in view, and the gaps make up for the others', () => {
  for (const [count, top, seen] of [[0, 0, 500], [61, 0, 500], [2000, 0, 500], [2000, 30_000, 500], [2000, 1e9, 500], [2000, -700, 500]]) {
    const { from, to, above, below } = rowsIn(count, 30, top, seen);
    assert.equal(above + (to - from) * 30 + below, count * 30, `${count} rows from ${top}`);
    assert.ok(0 <= from && from <= to && to <= count);
    assert.ok(to - from <= Math.ceil(seen / 30) + 13);
    for (let row = Math.max(0, Math.floor(top / 30)); row < Math.min(count, (top + seen) / 30); row += 1) assert.ok(from <= row && row < to, `row ${row}`);
  }
});

test('a short list is drawn whole', () => {
  assert.deepEqual(rowsIn(60, 30, 5000, 100), { from: 0, to: 60, above: 0, below: 0 });
});

test('a key leads to another cell, or nowhere', () => {
  assert.equal(moved('ArrowDown', 0, 10), 1);
  assert.equal(moved('ArrowDown', 9, 10), undefined);
  assert.equal(moved('ArrowDown', 1, 10, 4), 5);
  assert.equal(moved('ArrowRight', 1, 10), undefined);
  assert.equal(moved('ArrowRight', 1, 10, 4), 2);
  assert.equal(moved('End', 0, 10), 9);
  assert.equal(moved('PageDown', 0, 5), 4);
  assert.equal(moved('a', 0, 5), undefined);
});

test('what has no value comes last in both directions', () => {
  const rows = [{ v: null }, { v: 2 }, { v: undefined }, { v: 10 }];
  assert.deepEqual(sorted(rows, ({ v }) => v, false).map(({ v }) => v), [2, 10, null, undefined]);
  assert.deepEqual(sorted(rows, ({ v }) => v, true).map(({ v }) => v), [10, 2, null, undefined]);
});

test('names are sorted as people count', () => {
  assert.deepEqual(sorted(['shop10', 'shop9'], name => name, false), ['shop9', 'shop10']);
});

test('all words must be there, in any order', () => {
  assert.equal(finder('total  Mem')('memory_total'), true);
  assert.equal(finder('total x')('memory_total'), false);
  assert.equal(finder(' ')('anything'), true);
});

const node = (name, utilisation, state = 'up', worst = null) => ({ node: name, family: name[0], state, worst, alarms: worst === null ? 0 : 1, figures: { utilisation } });

test('nodes are found by name and state, and sorted by trouble', () => {
  const nodes = [node('b@h', 0.5), node('a@h', 0.9), node('c@h', null, 'down', 'critical'), node('d@h', 0, 'up', 'minor')];
  const names = wanted => chosen(nodes, { search: '', state: '', family: '', order: 'name', ...wanted }).map(({ node }) => node);
  assert.deepEqual(names({}), ['a@h', 'b@h', 'c@h', 'd@h']);
  assert.deepEqual(names({ order: 'load' }), ['a@h', 'b@h', 'd@h', 'c@h']);
  assert.deepEqual(names({ order: 'trouble' }), ['c@h', 'd@h', 'a@h', 'b@h']);
  assert.deepEqual(names({ state: 'alarms' }), ['c@h', 'd@h']);
  assert.deepEqual(names({ search: 'B@' }), ['b@h']);
  assert.deepEqual(names({ family: 'c' }), ['c@h']);
  assert.deepEqual(families(nodes), ['a', 'b', 'c', 'd']);
});

test('a severity wants what is worse too', () => {
  const is = { kind: 'log', severity: 'major', node: 'a@h', text: 'Broken' };
  const wanted = what => wants({ search: '', severity: '', kind: '', node: '', ...what })(is);
  assert.equal(wanted({ severity: 'minor' }), true);
  assert.equal(wanted({ severity: 'critical' }), false);
  assert.equal(wanted({ search: 'broKEN' }), true);
  assert.equal(wanted({ search: 'A@' }), true);
  assert.equal(wanted({ kind: 'state' }), false);
  assert.equal(wanted({ node: 'b@h' }), false);
});

test('what came since stands once, as it is now', () => {
  assert.deepEqual(merged([{ id: 3, a: 'new' }], [{ id: 3, a: 'old' }, { id: 2 }]), [{ id: 3, a: 'new' }, { id: 2 }]);
});

const leaf = id => ({ id, children: [] });
const TREE = [{ id: 'kernel', children: [{ id: 'sup', children: [leaf('x'), leaf('y')] }] }, leaf('other')];

test('a tree shows what is open', () => {
  assert.deepEqual(rowsOf(TREE, new Set()).map(({ entry }) => entry.id), ['kernel', 'other']);
  assert.deepEqual(opened(TREE, 9), ['0', '0.0']);
  const rows = rowsOf(TREE, new Set(opened(TREE, 9)));
  assert.deepEqual(rows.map(({ entry, depth, place, of }) => [entry.id, depth, place, of]),
    [['kernel', 1, 1, 2], ['sup', 2, 1, 1], ['x', 3, 1, 2], ['y', 3, 2, 2], ['other', 1, 2, 2]]);
});

test('the arrow keys open, go in, close and go out', () => {
  const open = new Set(['0']);
  const rows = rowsOf(TREE, open);
  assert.deepEqual(step(rows, '0', 'ArrowRight', open), { focus: '0.0' });
  assert.deepEqual(step(rows, '0.0', 'ArrowRight', open), { open: '0.0' });
  assert.deepEqual(step(rows, '0.0', 'ArrowLeft', open), { focus: '0' });
  assert.deepEqual(step(rows, '0', 'ArrowLeft', open), { close: '0' });
  assert.deepEqual(step(rows, '0', 'End', open), { focus: '1' });
  assert.equal(step(rows, '1', 'ArrowRight', open), undefined);
  assert.equal(step(rows, '1', 'ArrowDown', open), undefined);
});
