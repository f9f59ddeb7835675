// SPDX-License-Identifier: Apache-2.0
// All connections between the nodes, and what goes over each.
import { useEffect, useMemo, useState } from 'preact/hooks';
import * as api from '../api.js';
import type { Link, Topology } from '../api.js';
import * as format from '../format.js';
import { tune } from '../go.js';
import type { Route } from '../route.js';
import { finder } from '../sort.js';
import { keyOf, rates, type Rate } from '../topology.js';
import { useAsk } from './hooks.js';
import { Choice, Empty, Name, NodeLink, Search, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';
import { Gaps, TOPOLOGY_MS } from './topology.js';

interface Row extends Link { rate: Rate | undefined }

const COLUMNS: Column<Row>[] = [
  { key: 'from', title: 'From', by: ({ from }) => from, cell: ({ from }) => <NodeLink node={from} row /> },
  { key: 'to', title: 'To', by: ({ to }) => to, cell: ({ to }) => <NodeLink node={to} row /> },
  { key: 'kind', title: 'Kind', by: ({ kind }) => kind, cell: ({ kind }) => <Name>{kind}</Name> },
  { key: 'there', title: 'There', number: true, by: ({ rate }) => rate?.there, cell: ({ rate }) => format.rate(rate?.there, 'bytes') },
  { key: 'back', title: 'Back', number: true, by: ({ rate }) => rate?.back, cell: ({ rate }) => format.rate(rate?.back, 'bytes') },
  { key: 'all_there', title: 'All there', number: true, by: ({ bytes_there }) => bytes_there, cell: ({ bytes_there }) => format.value(bytes_there, 'bytes') },
  { key: 'all_back', title: 'All back', number: true, by: ({ bytes_back }) => bytes_back, cell: ({ bytes_back }) => format.value(bytes_back, 'bytes') },
  { key: 'rtt', title: 'Round trip', number: true, by: ({ rtt_us }) => rtt_us, cell: ({ rtt_us }) => format.value(rtt_us, 'microseconds') },
  { key: 'age', title: 'Age', number: true, by: ({ age_ms }) => age_ms, cell: ({ age_ms }) => format.value(age_ms, 'milliseconds') },
  { key: 'by', title: 'Connected by', by: ({ connected_by }) => connected_by, cell: ({ connected_by }) => connected_by === null ? format.NOTHING : <Name>{connected_by}</Name> }
];

/** The last two answers that differ: the server may give the same one for ten seconds. */
const useTwo = (answer: Topology | undefined): { before?: Topology; now?: Topology } => {
  const [two, setTwo] = useState<{ before?: Topology; now?: Topology }>({});
  useEffect(() => {
    if (answer !== undefined) setTwo(was => was.now === undefined ? { now: answer } : was.now.at_ms === answer.at_ms ? was : { before: was.now, now: answer });
  }, [answer]);
  return two;
};

export const ConnectionsView = ({ route: { params: { q = '', kind = '' } } }: { route: Route }) => {
  const { answer, failure } = useAsk('topology', api.topology, TOPOLOGY_MS);
  const { before, now } = useTwo(answer);
  const all = useMemo((): Row[] => {
    if (now === undefined) return [];
    const gained = rates(before, now);
    return [...now.links, ...now.circuits].map(link => ({ ...link, rate: gained.get(keyOf(link)) }));
  }, [before, now]);
  const rows = useMemo(() => {
    const found = finder(q);
    return all.filter(link => (kind === '' || link.kind === kind) && found(`${link.from} ${link.to}`));
  }, [all, q, kind]);
  const kinds = [...new Set(all.map(link => link.kind))].sort();
  if (now === undefined) return <Waiting failure={failure} />;
  return <>
    <div class="controls">
      <Search label="Search nodes" value={q} onInput={q => tune({ q })} />
      <Choice label="Kind" value={kind} values={[['', 'any'], ...kinds.map(each => [each, each] as const)]} onChange={kind => tune({ kind })} />
      <p class="soft" role="status">{rows.length === all.length ? format.plural(all.length, 'connection') : `${format.plural(rows.length, 'connection')} of ${all.length.toLocaleString('en')}`}</p>
    </div>
    <Trouble>{failure}</Trouble>
    <Gaps topology={now} />
    {rows.length === 0 ? <Empty>{all.length === 0 ? 'No two nodes are connected.' : 'No connection is so.'}</Empty>
      : <Table label="Connections" rows={rows} columns={COLUMNS} keyOf={keyOf} sort={{ key: 'from', down: false }} />}
  </>;
};
