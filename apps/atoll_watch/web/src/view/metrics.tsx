// SPDX-License-Identifier: Apache-2.0
// Any metrics of any nodes, over any of the windows.
import { useEffect, useMemo } from 'preact/hooks';
import * as api from '../api.js';
import type { Metric, Series, Window } from '../api.js';
import { busiest, charts, FIRST_METRICS, MOST_METRICS, MOST_NODES, WINDOWS } from '../explore.js';
import * as format from '../format.js';
import { tune } from '../go.js';
import { href, joined, list, type Route } from '../route.js';
import { holeOf } from '../series.js';
import { Chart } from './chart.js';
import { useAsk, useLive } from './hooks.js';
import { Empty, Tabs, Trouble, Waiting } from './parts.js';
import { Pick } from './pick.js';

/** A point of the longer windows is minutes wide: no need to ask often. */
const AGAIN_MS: Record<Window, number> = { '15min': 5000, hour: 15_000, day: 60_000, week: 300_000, month: 300_000 };
const POINTS = 300;
/** Users may make new ones. */
const METRICS_MS = 60_000;

const write = (metric: Metric) => (n: number | null | undefined, more = 0): string => metric.kind === 'counter' ? format.rate(n, metric.unit, more) : format.value(n, metric.unit, more);
const named = ({ node, label }: Series): string => label === null ? node : `${node} · ${label}`;

const Charts = ({ window, wanted, nodes, metrics }: { window: Window; wanted: string[]; nodes: string[]; metrics: readonly Metric[] }) => {
  const period = useLive(state => state.cluster?.period_ms ?? 5000);
  const { answer, failure } = useAsk(JSON.stringify([window, wanted, nodes]),
    api.series({ window, metric: wanted, node: nodes, points: POINTS }), AGAIN_MS[window]);
  const drawn = useMemo(() => charts(wanted, metrics, answer?.series ?? []), [answer, metrics]);
  if (answer === undefined) return <Waiting failure={failure} />;
  return <>
    <Trouble>{failure}</Trouble>
    {answer.omitted > 0 && <p class="soft">{format.plural(answer.omitted, 'series', 'series')} left out: too many were asked for.</p>}
    {drawn.map(({ metric, series, omitted }) => <section key={metric.name} class="metric">
      <h3><bdi>{metric.name}</bdi> <span class="unit">{metric.help}{metric.kind === 'counter' && ', in a second'}</span></h3>
      {series.length === 0 ? <Empty>Nothing was measured in this window.</Empty>
        : <Chart title={metric.name} write={write(metric)} series={series} named={named} from={answer.from_ms} to={answer.to_ms} hole={holeOf(answer.step_ms, period)} />}
      {omitted > 0 && <p class="soft">{format.plural(omitted, 'curve')} with lower peaks not drawn: choose fewer nodes.</p>}
    </section>)}
  </>;
};

export const MetricsView = ({ route: { params } }: { route: Route }) => {
  const nodes = useLive(state => state.nodes);
  const metrics = useAsk('metrics', api.metrics, METRICS_MS);
  const window = WINDOWS.find(([key]) => key === params.w)?.[0] ?? '15min';
  const [wanted, of] = [list(params.m), list(params.n)];
  const stored = useMemo(() => (metrics.answer ?? []).filter(({ stored }) => stored), [metrics.answer]);
  const names = [...nodes.keys()].sort().join('\n');
  const nodeItems = useMemo(() => [...nodes.keys()].sort().map(key => ({ key, note: '' })), [names]);
  const metricItems = useMemo(() => stored.map(({ name, help }) => ({ key: name, note: help })), [stored]);

  // The choice stands in the address, so it stays while the load changes.
  useEffect(() => {
    if (params.m === undefined && params.n === undefined && nodes.size > 0) tune({ m: joined(FIRST_METRICS), n: joined(busiest(nodes.values())) });
  }, [nodes.size > 0]);

  if (metrics.answer === undefined) return <Waiting failure={metrics.failure} />;
  return <>
    <Tabs label="Window" now={window} tabs={WINDOWS.map(([key, title]) => ({ key, title, to: href('metrics', '', { ...params, w: key }) }))} />
    <div class="explorer">
      <div class="picks">
        <Pick title="Metrics" items={metricItems} chosen={wanted} most={MOST_METRICS} onChange={to => tune({ m: joined(to) })} />
        <Pick title="Nodes" items={nodeItems} chosen={of} most={MOST_NODES} onChange={to => tune({ n: joined(to) })} />
      </div>
      <div class="charts">
        {wanted.length === 0 || of.length === 0 ? <Empty>Choose a metric and a node.</Empty>
          : <Charts window={window} wanted={wanted} nodes={of} metrics={stored} />}
      </div>
    </div>
  </>;
};
