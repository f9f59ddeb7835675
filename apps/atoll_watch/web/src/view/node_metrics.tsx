// SPDX-License-Identifier: Apache-2.0
// All metrics of a node: what each says now, and its last quarter of an hour.
import { useMemo, useState } from 'preact/hooks';
import * as api from '../api.js';
import type { Metric, Reading, Series } from '../api.js';
import * as format from '../format.js';
import { go } from '../go.js';
import { joined } from '../route.js';
import { holeOf, nameOf, sparkline } from '../series.js';
import { finder } from '../sort.js';
import { useAsk, useLive } from './hooks.js';
import { Empty, Long, Name, Search, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';

const SERIES_MS = 15_000;
/** A point for each pixel or two of a sparkline is enough. */
const POINTS = 90;
const [WIDTH, HEIGHT] = [150, 22];

interface Row { reading: Reading; metric: Metric; name: string; d: string }

const METRICS_MS = 60_000;

/** One that has come since is shown with what it says itself. */
const unlisted = (name: string): Metric => ({ name, unit: null, kind: 'gauge', label: null, help: '', prometheus: '', stored: false });

/** What is of one connection stands with the connections. */
const listed = (metric: Metric): boolean => metric.label !== 'peer';

export const NodeMetrics = ({ node }: { node: string }) => {
  const period = useLive(state => state.cluster?.period_ms ?? 5000);
  const [search, setSearch] = useState('');
  const metrics = useAsk('metrics', api.metrics, METRICS_MS);
  const readings = useAsk(`readings ${node}`, api.readings(node), period);
  const wanted = useMemo(() => (metrics.answer ?? []).filter(metric => metric.stored && listed(metric)).map(({ name }) => name), [metrics.answer]);
  const past = useAsk(`past ${node} ${wanted.length}`, async signal => wanted.length === 0 ? undefined
    : api.series({ window: '15min', metric: wanted, node: [node], points: POINTS })(signal), SERIES_MS);

  const rows = useMemo((): Row[] => {
    const known = new Map(metrics.answer?.map(metric => [metric.name, metric]));
    const order = new Map(metrics.answer?.map(({ name }, i) => [name, i]));
    const series = new Map(past.answer?.series.map((each: Series) => [nameOf(each), each]));
    const found = finder(search);
    return (readings.answer?.readings ?? []).flatMap(reading => {
      const metric = known.get(reading.metric) ?? unlisted(reading.metric);
      const name = nameOf(reading);
      if (!listed(metric) || !found(`${name} ${metric.help}`)) return [];
      const points = series.get(name)?.points ?? [];
      const d = past.answer === undefined ? '' : sparkline(points, past.answer.from_ms, past.answer.to_ms, holeOf(past.answer.step_ms, period), WIDTH, HEIGHT);
      return [{ reading, metric, name, d }];
    }).sort((a, b) => (order.get(a.metric.name) ?? order.size) - (order.get(b.metric.name) ?? order.size));
  }, [metrics.answer, readings.answer, past.answer, search]);

  const columns: Column<Row>[] = [
    { key: 'name', title: 'Metric', by: ({ name }) => name, cell: ({ name }) => <Name>{name}</Name> },
    { key: 'now', title: 'Now', number: true, by: ({ reading }) => reading.value, cell: ({ reading, metric }) => format.value(reading.value, metric.unit) },
    { key: 'rate', title: 'In a second', number: true, by: ({ reading }) => reading.rate, cell: ({ reading, metric }) => metric.kind === 'counter' ? format.rate(reading.rate, metric.unit) : '' },
    { key: 'past', title: 'Last 15 min', cell: ({ d }) => <svg class="sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true"><path d={d} /></svg> },
    { key: 'help', title: 'What it is', cell: ({ metric }) => <span class="soft"><Long>{metric.help}</Long></span> }
  ];
  const failure = readings.failure ?? metrics.failure ?? past.failure;
  if (readings.answer === undefined || metrics.answer === undefined) return <Waiting failure={failure} />;
  return <>
    <div class="controls"><Search label="Search" value={search} onInput={setSearch} /></div>
    <Trouble>{failure}</Trouble>
    {rows.length === 0 ? <Empty>{readings.answer.readings.length === 0 ? 'It has said nothing yet.' : 'No metric is so.'}</Empty>
      : <Table label={`Metrics of ${node}`} rows={rows} columns={columns} keyOf={({ name }) => name}
        open={({ metric }) => { if (metric.stored) go('metrics', '', { m: joined([metric.name]), n: joined([node]) }); }} />}
  </>;
};
