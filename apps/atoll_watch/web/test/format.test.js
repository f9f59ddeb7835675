// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as format from '../src/format.ts';

const plain = text => text.replaceAll('\u00a0', ' ');

test('a count stands in full until a million', () => {
  assert.equal(plain(format.count(0)), '0');
  assert.equal(plain(format.count(12345)), '12,345');
  assert.equal(plain(format.count(1_234_567)), '1.23 M');
  assert.equal(plain(format.count(0.25)), '0.25');
});

test('bytes have three digits and a power of a thousand', () => {
  assert.equal(plain(format.bytes(0)), '0 B');
  assert.equal(plain(format.bytes(999)), '999 B');
  assert.equal(plain(format.bytes(999_999)), '1 MB');
  assert.equal(plain(format.bytes(61_440_000)), '61.4 MB');
});

test('a span has its two largest units', () => {
  assert.equal(plain(format.span(0.4)), '0.4 ms');
  assert.equal(plain(format.span(999)), '999 ms');
  assert.equal(plain(format.span(1500)), '1.5 s');
  assert.equal(plain(format.span(60_000)), '1 min');
  assert.equal(plain(format.span(11_520_000)), '3 h 12 min');
  assert.equal(plain(format.span(90_000_000)), '1 d 1 h');
});

test('what is not known is a dash, whatever the unit', () => {
  for (const unit of ['bytes', 'ratio', 'milliseconds', 'microseconds', null]) {
    for (const nothing of [null, undefined, NaN, Infinity]) {
      assert.equal(format.value(nothing, unit), format.NOTHING);
      assert.equal(format.rate(nothing, unit), format.NOTHING);
    }
  }
});

test('the gain of a time in a second is a share', () => {
  assert.equal(plain(format.rate(500, 'milliseconds')), '50.0 %');
  assert.equal(plain(format.rate(1_500_000, 'bytes')), '1.5 MB/s');
  assert.equal(plain(format.rate(0, null)), '0/s');
});

test('a time has its day unless it is today', () => {
  const noon = new Date(2026, 0, 31, 12, 3, 5).getTime();
  assert.equal(format.time(noon, noon + 1000), '12:03:05');
  assert.equal(format.time(noon, noon + 86_400_000), '2026-01-31 12:03:05');
});

test('the marks of an axis have as many digits as say them in full', () => {
  const marks = (at, unit) => format.marks(at, (n, more) => format.value(n, unit, more)).map(plain);
  assert.deepEqual(marks([0, 0.0005, 0.001], 'ratio'), ['0.00 %', '0.05 %', '0.10 %']);
  assert.deepEqual(marks([16_500_000, 16_550_000, 16_600_000], 'bytes'), ['16.5 MB', '16.55 MB', '16.6 MB']);
  assert.deepEqual(marks([0, 0.5, 1], 'ratio'), ['0.0 %', '50.0 %', '100.0 %']);
  assert.deepEqual(marks([0, 0.0025, 0.005], 'ratio'), ['0.00 %', '0.25 %', '0.50 %']);
  assert.deepEqual(marks([0, 25_000_000, 100_000_000], 'bytes'), ['0 B', '25 MB', '100 MB']);
  assert.deepEqual(marks([86_400_000, 86_410_000], 'milliseconds'), ['1 d', '1 d 10 s']);
  assert.deepEqual(marks([1, 1], 'bytes'), ['1 B', '1 B']);
});
