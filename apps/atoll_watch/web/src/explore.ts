// SPDX-License-Identifier: Apache-2.0
// What the metrics explorer draws of an answer: a chart for each metric, and no more curves
// in it than can be told apart.
import type { Metric, Node, Series, Window } from './api.js';

export const WINDOWS = [['15min', '15 min'], ['hour', 'Hour'], ['day', 'Day'], ['week', 'Week'], ['month', 'Month']] as const satisfies readonly (readonly [Window, string])[];

export const MOST_METRICS = 8;
export const MOST_NODES = 8;
export const MOST_CURVES = 8;

export interface Drawn { metric: Metric; series: Series[]; omitted: number }

const peak = ({ points }: Series): number => points.reduce((most, [, , , max]) => Math.max(most, max), -Infinity);

/** Where there are too many curves, those with the highest peaks; in the order of their names. */
export const charts = (wanted: readonly string[], metrics: readonly Metric[], series: readonly Series[]): Drawn[] => wanted.flatMap(name => {
  const metric = metrics.find(metric => metric.name === name);
  if (metric === undefined) return [];
  const mine = series.filter(each => each.metric === name && each.points.length > 0);
  const high = new Set([...mine].sort((a, b) => peak(b) - peak(a)).slice(0, MOST_CURVES));
  return [{ metric, series: mine.filter(each => high.has(each)), omitted: mine.length - high.size }];
});

/** What is drawn until somebody chooses: the load and memory of the busiest nodes. */
export const FIRST_METRICS = ['utilisation', 'memory_total'];
export const busiest = (nodes: Iterable<Node>): string[] =>
  [...nodes].filter(({ state }) => state === 'up').sort((a, b) => (b.figures.utilisation ?? 0) - (a.figures.utilisation ?? 0)).slice(0, 4).map(({ node }) => node);
