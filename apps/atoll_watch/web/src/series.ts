// SPDX-License-Identifier: Apache-2.0
// Series as they are drawn: put on one axis of time, with holes where nothing was measured.
import type { Series } from './api.js';

export type Point = Series['points'][number];

/** Of one curve at the times of all: null where there is a hole, undefined where it says nothing. */
export type Ys = (number | null | undefined)[];

export interface Aligned {
  /** Seconds. */
  times: number[];
  curves: { average: Ys; min: Ys; max: Ys }[];
}

/** Two points of a series that are further apart than `hole` milliseconds are not joined. */
export const aligned = (all: readonly (readonly Point[])[], hole: number): Aligned => {
  const holed = all.map(points => withHoles(points, hole));
  const times = [...new Set(holed.flatMap(points => points.map(([time]) => time)))].sort((a, b) => a - b);
  const at = new Map(times.map((time, i) => [time, i]));
  const curves = holed.map(points => {
    const curve = { average: blank(times.length), min: blank(times.length), max: blank(times.length) };
    for (const [time, average, min, max] of points) {
      const i = at.get(time) as number;
      curve.average[i] = average;
      curve.min[i] = min;
      curve.max[i] = max;
    }
    return curve;
  });
  return { times: times.map(time => time / 1000), curves };
};

const blank = (length: number): Ys => new Array<undefined>(length).fill(undefined);

type Holed = readonly [number, number | null, number | null, number | null];

const withHoles = (points: readonly Point[], hole: number): Holed[] => points.flatMap((point, i): Holed[] => {
  const before = points[i - 1];
  return before !== undefined && point[0] - before[0] > hole ? [[(before[0] + point[0]) / 2, null, null, null], point] : [point];
});

/** How far apart two points are that are not joined, see the contract. */
export const holeOf = (step: number, period: number): number => 2 * Math.max(step, period);

/** An SVG path of averages in a box of `width` by `height`, from time `from` to `to`. */
export const sparkline = (points: readonly Point[], from: number, to: number, hole: number, width: number, height: number): string => {
  const values = points.map(([, average]) => average);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const x = (time: number): string => ((time - from) / Math.max(1, to - from) * width).toFixed(1);
  // What does not change lies in the middle.
  const y = (value: number): string => (high === low ? height / 2 : height - 1 - (value - low) / (high - low) * (height - 2)).toFixed(1);
  return points.map(([time, average], i) => {
    const before = points[i - 1];
    const pen = before === undefined || time - before[0] > hole ? 'M' : 'L';
    return `${pen}${x(time)} ${y(average)}`;
  }).join('');
};

/** `memory_total`, `mailbox of <0.1.0>`. */
export const nameOf = ({ metric, label }: { metric: string; label: string | null }): string => label === null ? metric : `${metric} of ${label}`;

/** The point at a time, or the last one before it. */
export const pointAt = (points: readonly Point[], ms: number): Point | undefined => {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle] as Point)[0] <= ms) low = middle + 1; else high = middle;
  }
  return points[low - 1];
};
