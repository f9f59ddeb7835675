// SPDX-License-Identifier: Apache-2.0
// Curves over time, each with a band from its least to its most. What is at the pointer,
// or the last, stands in the table below; uPlot draws nothing but the curves and axes.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Series } from '../api.js';
import { marks } from '../format.js';
import { curve, ink, look } from '../look.js';
import { aligned, pointAt, type Point } from '../series.js';
import { useLook } from './hooks.js';
import { Name } from './parts.js';

interface Props {
  title: string;
  /** What the axis and the table say of a value. */
  write: (n: number | null | undefined, more?: number) => string;
  series: readonly Series[];
  named: (series: Series) => string;
  from: number;
  to: number;
  hole: number;
}

const HEIGHT = 220;
const FONT = '12px system-ui, sans-serif';
const TOGETHER = uPlot.sync('page');
const PER_CURVE = 3;

const clock = (seconds: number, step: number): string => {
  const at = new Date(seconds * 1000);
  const two = (n: number): string => String(n).padStart(2, '0');
  if (step >= 86_400) return `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${two(at.getHours())}:${two(at.getMinutes())}${step < 60 ? `:${two(at.getSeconds())}` : ''}`;
};

const options = (count: number, width: number, write: Props['write'], moved: (seconds: number | undefined) => void): uPlot.Options => {
  const [soft, fine, line] = [ink('--soft'), ink('--fine'), ink('--line')];
  const axis: uPlot.Axis = { stroke: soft, font: FONT, grid: { stroke: fine, width: 1 }, ticks: { stroke: line, width: 1 } };
  return {
    width, height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: TOGETHER.key }, drag: { x: false, y: false }, points: { show: false } },
    scales: { y: { range: (_, low, high) => around(low, high) } },
    axes: [
      { ...axis, size: 30, space: 70, values: (_, at, __, ___, step) => at.map(seconds => clock(seconds, step)) },
      { ...axis, size: 76, values: (_, at) => marks(at, write) }
    ],
    series: [{}, ...Array.from({ length: count }, (_, i): uPlot.Series[] => {
      const { color, dash } = curve(i);
      const edge: uPlot.Series = { stroke: 'transparent', width: 0, points: { show: false } };
      return [{ stroke: color, width: 2, dash, points: { show: false } }, edge, edge];
    }).flat()],
    bands: Array.from({ length: count }, (_, i): uPlot.Band =>
      ({ series: [i * PER_CURVE + 3, i * PER_CURVE + 2], fill: `${curve(i).color}2e` })),
    hooks: { setCursor: [plot => { moved(plot.cursor.idx == null ? undefined : plot.data[0][plot.cursor.idx]); }] }
  };
};

/** From nought where that is near, and never a line without a height. */
const around = (low: number | null, high: number | null): [number, number] => {
  if (low === null || high === null) return [0, 1];
  const rest = high - low || Math.abs(high) || 1;
  const from = low >= 0 && low < high * 0.7 ? 0 : low - rest * 0.08;
  return [from, high + rest * 0.08];
};

const Swatch = ({ at }: { at: number }) => {
  const { color, dash } = curve(at);
  return <svg class="swatch" viewBox="0 0 30 10" aria-hidden="true">
    <path d="M1 5H29" stroke={color} stroke-width="2.5" fill="none" stroke-dasharray={dash.join(' ')} />
  </svg>;
};

export const Chart = ({ title, write, series, named, from, to, hole }: Props) => {
  useLook();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const [at, setAt] = useState<number | undefined>(undefined);
  const data = useMemo((): uPlot.AlignedData => {
    const { times, curves } = aligned(series.map(({ points }) => points), hole);
    return [times, ...curves.flatMap(({ average, min, max }) => [average, min, max])];
  }, [series, hole]);

  const now = look();
  useEffect(() => {
    const place = box.current as HTMLDivElement;
    const made = plot.current = new uPlot(options(series.length, place.clientWidth, write, setAt), data, place);
    const sizes = new ResizeObserver(() => made.setSize({ width: place.clientWidth, height: HEIGHT }));
    sizes.observe(place);
    return () => { sizes.disconnect(); made.destroy(); };
  }, [series.length, now]);

  useEffect(() => {
    plot.current?.setData(data, false);
    plot.current?.setScale('x', { min: from / 1000, max: to / 1000 });
  }, [data, from, to, now]);

  const point = (points: readonly Point[]): Point | undefined => at === undefined ? points[points.length - 1] : pointAt(points, at * 1000);
  return <figure class="chart">
    <figcaption>{title}</figcaption>
    <div class="drawing" ref={box} role="img" aria-label={`${title}: ${series.length} curves; their values stand in the table below`} />
    <div class="scroll" tabIndex={0} role="group" aria-label={`${title}: values`}>
      <table class="values" aria-label={`${title}: values`}>
        <thead><tr><th scope="col">curve</th><th scope="col" class="number">{at === undefined ? 'last' : 'at the pointer'}</th><th scope="col" class="number">least</th><th scope="col" class="number">most</th></tr></thead>
        <tbody>
          {series.map((each, i) => {
            const [, average, min, max] = point(each.points) ?? [];
            return <tr key={named(each)}>
              <th scope="row"><Swatch at={i} /><Name>{named(each)}</Name></th>
              <td class="number">{write(average)}</td><td class="number">{write(min)}</td><td class="number">{write(max)}</td>
            </tr>;
          })}
        </tbody>
      </table>
    </div>
  </figure>;
};
