// SPDX-License-Identifier: Apache-2.0
// From a panel of the model to an option of the library: the same for the page and
// for the files.
import { FONT, style } from './look.js';
import { scaleOf, sweepScale } from './scale.js';
import { tick, value } from './format.js';

// What of a chart is to be seen: the reader's choices, over the model's.
export const viewOf = (chart, chosen = {}) => ({
  hidden: new Set(), choice: chart.choice?.first, yScale: chart.y.scale, xScale: chart.x.scale, tail: false, ...chosen
});

export const panelsIn = (chart, view) =>
  chart.panels.filter(panel => chart.choice === undefined || panel.choice === view.choice);

const linesIn = (panel, view) => panel.lines.filter(({ series }) => !view.hidden.has(series));

// Ends where the values do.
const fitted = (scale, values) => {
  const max = Math.max(...values, 1) * 1.01;
  return { ...scale, max, ticks: scale.ticks.filter(v => v <= max) };
};

// All panels have the same axes, whatever is hidden in them.
const scales = (chart, view) => {
  const points = chart.panels.flatMap(panel => panel.lines.flatMap(line => line.points));
  const ideal = chart.panels.flatMap(panel => panel.ideal ?? []);
  const xs = points.map(([x]) => x);
  switch (chart.kind) {
    case 'cdf': {
      const top = 1 - Math.max(...chart.panels.flatMap(p => p.lines.flatMap(({ points }) => points.filter(([, y]) => y < 1).map(([, y]) => y))), 0.99);
      return {
        x: scaleOf('log', xs, { wanted: 6, room: 1.02 }),
        y: view.tail ? { ...scaleOf('log', [top, 1], { room: 1 }), tail: true } : { ...scaleOf('linear', [0, 1]), ticks: [0, 0.25, 0.5, 0.75, 1] }
      };
    }
    case 'load':
      return { x: fitted(scaleOf('linear', [0, ...xs], { wanted: 8 }), xs), y: scaleOf('linear', [0, 0.25, ...points.map(([, y]) => y)], { wanted: 4 }) };
    default:
      return {
        x: sweepScale(view.xScale, chart.x.ticks),
        y: scaleOf(view.yScale, [...points, ...ideal].flatMap(([, ...ys]) => ys), { wanted: view.yScale === 'log' ? 9 : 6 })
      };
  }
};

const axes = (chart, { x, y }, look, small) => {
  const text = { color: look.soft, fontSize: 12, fontFamily: FONT };
  const named = (name, nameGap) => ({ name, nameLocation: 'middle', nameGap, nameTextStyle: { ...text, color: look.ink } });
  const label = (axis, scale) => axis.scale === 'category'
    ? v => axis.ticks[Math.round(v)] ?? ''
    : v => tick[axis.format](scale.from(v));
  const base = (axis, scale) => ({
    type: 'value', min: scale.min, max: scale.max,
    axisTick: { show: true, customValues: scale.ticks.map(scale.to), lineStyle: { color: look.line } },
    axisLabel: { ...text, customValues: scale.ticks.map(scale.to), hideOverlap: true, formatter: label(axis, scale) },
    minorTick: { show: false }, axisPointer: { label: { show: false }, lineStyle: { color: look.line } }
  });
  const yName = y.tail ? 'share of all that took longer' : chart.y.label;
  return {
    xAxis: { ...base(chart.x, x), ...named(chart.x.label, 30), axisLine: { show: true, onZero: false, lineStyle: { color: look.line } }, splitLine: { show: false } },
    yAxis: { ...base(chart.y, y), ...named(yName, small ? 48 : 54), axisTick: { show: false, customValues: y.ticks.map(y.to) }, axisLine: { show: false }, splitLine: { show: true, lineStyle: { color: look.grid } } }
  };
};

// Next to each other where they would lie on each other.
const dodge = (chart, lines, n) =>
  chart.x.scale === 'category' && chart.x.label !== chart.by && lines.length > 1 ? (n - (lines.length - 1) / 2) * 14 : 0;

const errorBar = (shift, color) => (params, api) => {
  const [x, low] = api.coord([api.value(0), api.value(1)]);
  const [, high] = api.coord([api.value(0), api.value(2)]);
  const at = x + shift;
  const bar = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: color, lineWidth: 1.6 } });
  return low - high < 1 ? undefined
    : { type: 'group', children: [bar(at, low, at, high), bar(at - 4, low, at + 4, low), bar(at - 4, high, at + 4, high)] };
};

const sweepSeries = (chart, panel, view, { x, y }, look) => {
  const lines = linesIn(panel, view);
  return lines.flatMap(({ series, points }, n) => {
    const { color, marker, dash } = style(look, series);
    const shift = dodge(chart, lines, n);
    return [
      {
        type: 'custom', silent: true, z: 2, clip: true, tooltip: { show: false },
        data: points.filter(([, , low]) => low !== undefined).map(([at, , low, high]) => [x.to(at), y.to(low), y.to(high)]),
        renderItem: errorBar(shift, color)
      },
      {
        type: 'line', name: chart.series[series], z: 3, clip: false,
        data: points.map(([at, ...ys]) => ({ value: [x.to(at), y.to(ys[0])], raw: [at, ...ys], series })),
        symbol: marker, symbolSize: 9, symbolOffset: [shift, 0], showAllSymbol: true,
        lineStyle: { color, width: chart.x.scale === 'category' ? 0 : 2, type: dash },
        itemStyle: { color, borderColor: look.paper, borderWidth: 1 }, emphasis: { scale: 1.25 }
      }
    ];
  });
};

const idealSeries = (panel, { x, y }, look) => panel.ideal === undefined ? [] : [{
  type: 'line', name: 'ideal', silent: true, symbol: 'none', z: 1, clip: true, tooltip: { show: false },
  data: panel.ideal.map(([at, best]) => [x.to(at), y.to(best)]),
  lineStyle: { color: look.soft, width: 1.2, type: [2, 4] },
  endLabel: { show: true, formatter: 'ideal', color: look.soft, fontSize: 11, fontFamily: FONT, offset: [-30, -10] }
}];

const cdfSeries = (chart, panel, view, { x, y }, look) => linesIn(panel, view).map(({ series, points, marks }) => {
  const { color, marker, dash } = style(look, series);
  const shown = view.tail ? points.filter(([, share]) => share < 1) : points;
  return {
    type: 'line', name: chart.series[series], z: 3, clip: true, showAllSymbol: true,
    data: shown.map(([at, share], i) => ({
      value: [x.to(at), y.to(view.tail ? 1 - share : share)], raw: [at, share], series,
      symbol: marks.includes(i) ? marker : 'none', symbolSize: 9
    })),
    lineStyle: { color, width: 2, type: dash }, itemStyle: { color, borderColor: look.paper, borderWidth: 1 }
  };
});

const loadSeries = (chart, panel, { x, y }, look) => panel.lines.map(({ points, marks }) => ({
  type: 'scatter', name: 'round', clip: false,
  data: points.map(([at, share], i) => {
    const marked = marks.includes(i);
    return {
      value: [x.to(at), y.to(share)], raw: [at, share], series: 0,
      symbol: marked ? 'diamond' : 'circle', symbolSize: marked ? 11 : 6,
      itemStyle: { color: marked ? look.alarm : look.soft, opacity: marked ? 1 : 0.75 }
    };
  }),
  markLine: {
    silent: true, symbol: 'none', data: [{ yAxis: y.to(chart.limit.value) }], lineStyle: { color: look.alarm, type: [4, 4] },
    label: { formatter: chart.limit.label, position: 'insideEndTop', color: look.alarm, fontSize: 11, fontFamily: FONT }
  }
}));

// What stands at the pointer: for each series that is there, its name and values.
export const notes = (chart, view, items) => items
  .filter(({ data }) => data?.raw !== undefined)
  .map(({ data: { raw: [at, y, low, high], series } }) => ({
    series,
    at: chart.x.scale === 'category' ? chart.x.ticks[at] : value[chart.kind === 'load' ? 'seconds' : chart.x.format](at),
    name: chart.series[series],
    value: value[chart.y.format](view.tail ? 1 - y : y),
    interval: low === undefined ? '' : `${value[chart.y.format](low)} to ${value[chart.y.format](high)}`
  }));

export const panelOption = (chart, panel, view, look, { small = false } = {}) => {
  const both = scales(chart, view);
  const series = chart.kind === 'cdf' ? cdfSeries(chart, panel, view, both, look)
    : chart.kind === 'load' ? loadSeries(chart, panel, both, look)
      : [...idealSeries(panel, both, look), ...sweepSeries(chart, panel, view, both, look)];
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: FONT },
    grid: { left: small ? 62 : 70, right: 16, top: 14, bottom: 48 },
    ...axes(chart, both, look, small),
    series
  };
};
