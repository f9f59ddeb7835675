// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { delay } from '../src/backoff.ts';
import { byUrgency, initial, stepped } from '../src/state.ts';

const node = (name, state = 'up') => ({ node: name, state });
const alarm = (id, state = 'new', severity = 'major') => ({ id, state, severity, raised_ms: id });
const cluster = { now_ms: 5000, period_ms: 5000 };
const snapshot = (nodes = [], alarms = []) => ({ event: 'snapshot', data: { cluster, nodes, alarms }, now: 4000 });
const live = (...inputs) => stepped(initial, [{ event: 'opened' }, snapshot([node('a'), node('b')], [alarm(1)]), ...inputs]);

test('a snapshot makes it live, and says how far the clocks are apart', () => {
  const state = live();
  assert.equal(state.link.is, 'live');
  assert.equal(state.skew, 1000);
  assert.deepEqual([...state.nodes.keys()], ['a', 'b']);
});

test('what happened before the snapshot was there comes after it', () => {
  const early = stepped(initial, [{ event: 'opened' }, { event: 'nodes', data: [node('a', 'down')] }, { event: 'alarm', data: alarm(1, 'cleared') }, { event: 'gone', data: { node: 'b' } }]);
  assert.equal(early.nodes.size, 0);
  const state = stepped(early, [snapshot([node('a'), node('b')], [alarm(1)])]);
  assert.equal(state.nodes.get('a').state, 'down');
  assert.equal(state.nodes.has('b'), false);
  assert.equal(state.alarms.size, 0);
  assert.deepEqual(state.cleared.map(({ id }) => id), [1]);
});

test('an event that the snapshot knew already changes nothing in the end', () => {
  const state = stepped(stepped(initial, [{ event: 'opened' }, { event: 'alarm', data: alarm(1) }, { event: 'alarm', data: alarm(1, 'cleared') }]), [snapshot([], [])]);
  assert.equal(state.alarms.size, 0);
});

test('a state that was read does not change under its reader', () => {
  const before = live();
  const after = stepped(before, [{ event: 'nodes', data: [node('c')] }, { event: 'gone', data: { node: 'a' } }, { event: 'alarm', data: alarm(2) }]);
  assert.deepEqual([...before.nodes.keys()], ['a', 'b']);
  assert.deepEqual([...after.nodes.keys()], ['b', 'c']);
  assert.equal(before.alarms.size, 1);
  assert.equal(after.alarms.size, 2);
});

test('what nothing happened to stays the same, so that nobody draws it again', () => {
  const before = live();
  const after = stepped(before, [{ event: 'alarm', data: alarm(2) }]);
  assert.equal(after.nodes, before.nodes);
  assert.notEqual(after.alarms, before.alarms);
});

test('a connection is lost since the first failure, by the last one', () => {
  const state = live({ event: 'lost', why: 'first', now: 10 }, { event: 'opened' }, { event: 'lost', why: 'second', now: 20 });
  assert.deepEqual(state.link, { is: 'lost', since: 10, why: 'second' });
  assert.equal(state.nodes.size, 2, 'what was known is still shown');
  assert.equal(stepped(state, [{ event: 'opened' }, snapshot()]).link.is, 'live');
});

test('what is kept of the stream is bounded', () => {
  const many = Array.from({ length: 2000 }, (_, id) => ({ event: 'notification', data: { id } }));
  const { notifications } = live(...many);
  assert.equal(notifications.length, 500);
  assert.equal(notifications[0].id, 1999);
});

test('the worst alarm comes first, and of those the last', () => {
  const alarms = [alarm(1, 'new', 'minor'), alarm(2, 'new', 'critical'), alarm(3, 'new', 'minor')];
  assert.deepEqual(alarms.sort(byUrgency).map(({ id }) => id), [2, 3, 1]);
});

test('each try waits about twice as long, and half a minute at most', () => {
  assert.deepEqual([1, 2, 3, 4, 5, 6, 7, 100].map(n => delay(n, 0)), [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
  assert.equal(delay(1, 0.999) >= 750, true);
});
