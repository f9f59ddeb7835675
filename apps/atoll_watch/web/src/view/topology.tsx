// SPDX-License-Identifier: Apache-2.0
// How an Atoll cluster hangs together: groups, the nodes between them, circuits; and which manager of
// the watch asks which nodes.
import { useMemo } from 'preact/hooks';
import * as api from '../api.js';
import type { Link, Manager, Topology } from '../api.js';
import * as format from '../format.js';
import { live } from '../live.js';
import { href, type Route } from '../route.js';
import { between, keyOf, type Between } from '../topology.js';
import { Graph } from './graph.js';
import { useAsk, useLive } from './hooks.js';
import { Empty, Name, NodeLink, Nodes, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';

export const TOPOLOGY_MS = 10_000;

type Group = Topology['groups'][number];

const GROUPS: Column<Group>[] = [
  { key: 'name', title: 'Group', by: ({ name }) => name, cell: ({ name }) => <Name>{name}</Name> },
  { key: 'count', title: 'Nodes', number: true, by: ({ nodes }) => nodes.length, cell: ({ nodes }) => format.count(nodes.length) },
  { key: 'gateways', title: 'Gateways', number: true, by: ({ gateways }) => gateways.length, cell: ({ gateways }) => format.count(gateways.length) },
  { key: 'which', title: 'Which gateways', cell: ({ gateways }) => <Nodes nodes={gateways} /> }
];

const BETWEEN: Column<Between>[] = [
  { key: 'a', title: 'Group', by: ({ a }) => a, cell: ({ a }) => <Name>{a}</Name> },
  { key: 'b', title: 'and group', by: ({ b }) => b, cell: ({ b }) => <Name>{b}</Name> },
  { key: 'gateways', title: 'Nodes of both', number: true, by: ({ gateways }) => gateways.length, cell: ({ gateways }) => format.count(gateways.length) },
  { key: 'links', title: 'Links between others', number: true, by: ({ links }) => links, cell: ({ links }) => format.count(links) },
  { key: 'which', title: 'Which nodes', cell: ({ gateways }) => <Nodes nodes={gateways} /> }
];

const CIRCUITS: Column<Link>[] = [
  { key: 'from', title: 'From', by: ({ from }) => from, cell: ({ from }) => <NodeLink node={from} row /> },
  { key: 'to', title: 'To', by: ({ to }) => to, cell: ({ to }) => <NodeLink node={to} row /> },
  { key: 'over', title: 'Over', by: ({ path }) => path?.length, cell: ({ path }) => path === null ? format.NOTHING : <Nodes nodes={path.slice(1, -1)} /> },
  { key: 'rtt', title: 'Round trip', number: true, by: ({ rtt_us }) => rtt_us, cell: ({ rtt_us }) => format.value(rtt_us, 'microseconds') },
  { key: 'sealed', title: 'Sealed', by: ({ sealed }) => String(sealed), cell: ({ sealed }) => sealed === null ? format.NOTHING : sealed ? 'yes' : 'no' },
  { key: 'age', title: 'Age', number: true, by: ({ age_ms }) => age_ms, cell: ({ age_ms }) => format.value(age_ms, 'milliseconds') }
];

const MANAGERS: Column<Manager>[] = [
  { key: 'id', title: 'Manager', by: ({ id }) => id, cell: ({ id }) => String(id) },
  { key: 'state', title: 'State', by: ({ state }) => state, cell: ({ state }) => state },
  { key: 'since', title: 'For', number: true, by: ({ since_ms }) => -since_ms, cell: ({ since_ms }) => format.span(Math.max(0, live.now() - since_ms)) },
  { key: 'lost', title: 'Lost before', number: true, by: ({ lost }) => lost, cell: ({ lost }) => format.count(lost) },
  { key: 'memory', title: 'Memory', number: true, by: ({ memory }) => memory, cell: ({ memory }) => format.value(memory, 'bytes') },
  { key: 'count', title: 'Nodes', number: true, by: ({ nodes }) => nodes.length, cell: ({ nodes }) => format.count(nodes.length) },
  { key: 'which', title: 'Which nodes', cell: ({ nodes }) => <Nodes nodes={nodes} /> }
];

const Managers = () => {
  const { answer, failure } = useAsk('managers', api.managers, TOPOLOGY_MS);
  return answer === undefined ? <Waiting failure={failure} /> : <Table label="Managers" rows={answer.items} columns={MANAGERS} keyOf={({ id }) => id} />;
};

/** Who did not say, and what was left out: the rest is not the whole. */
export const Gaps = ({ topology: { silent, omitted } }: { topology: Topology }) => <>
  {silent.length > 0 && <p class="soft">Did not say: <Nodes nodes={silent} most={10} /></p>}
  {omitted > 0 && <p class="soft">{format.plural(omitted, 'link')} left out: there are too many.</p>}
</>;

export const TopologyView = (_: { route: Route }) => {
  const all = useLive(state => state.nodes);
  const nodes = useMemo(() => [...all.values()], [all]);
  const { answer, failure } = useAsk('topology', api.topology, TOPOLOGY_MS);
  const pairs = useMemo(() => answer === undefined ? [] : between(answer), [answer]);
  if (answer === undefined) return <Waiting failure={failure} />;
  return <>
    <Trouble>{failure}</Trouble>
    <p class="lead">{answer.atoll
      ? `${format.plural(answer.groups.length, 'group')}, ${format.plural(answer.nodes.filter(({ gateway }) => gateway).length, 'gateway')}, ${format.plural(answer.free.length, 'node')} in no group, ${format.plural(answer.circuits.length, 'circuit')}.`
      : 'Atoll runs on no node of this cluster: there are no groups and no circuits, only connections.'} <a href={href('connections')}>{format.plural(answer.links.length, 'connection')}</a></p>
    <Gaps topology={answer} />
    <Graph topology={answer} nodes={nodes} />
    {answer.groups.length > 0 && <><h3>Groups</h3><Table label="Groups" rows={answer.groups} columns={GROUPS} keyOf={({ name }) => name} sort={{ key: 'name', down: false }} /></>}
    {pairs.length > 0 && <><h3>Between groups</h3><Table label="Between groups" rows={pairs} columns={BETWEEN} keyOf={({ a, b }) => JSON.stringify([a, b])} /></>}
    {answer.atoll && <><h3>Circuits</h3>{answer.circuits.length === 0 ? <Empty>No connection goes over other nodes.</Empty>
      : <Table label="Circuits" rows={answer.circuits} columns={CIRCUITS} keyOf={keyOf} />}</>}
    <h3>Managers of the watch</h3>
    <Managers />
  </>;
};
