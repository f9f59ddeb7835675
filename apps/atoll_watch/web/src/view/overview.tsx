// SPDX-License-Identifier: Apache-2.0
// All nodes: as tiles, as a table, or by their groups.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import * as api from '../api.js';
import type { Node } from '../api.js';
import * as format from '../format.js';
import { go, tune } from '../go.js';
import { chosen, families, ORDERS, type Order } from '../nodes.js';
import { href, type Params, type Route } from '../route.js';
import { Graph } from './graph.js';
import { useAsk, useDeed, useLive } from './hooks.js';
import { Alarms, Bar, Choice, Empty, NodeLink, parted, Search, Since, StateMark, Tabs, Trouble, Waiting } from './parts.js';
import { useList } from './scroll.js';
import { Table, type Column } from './table.js';

const TILE_PX = 132;
const TILE_WIDTH_PX = 250;

const STATES = [['', 'any'], ['up', 'up'], ['silent', 'silent'], ['down', 'down'], ['refused', 'refused'], ['unknown', 'unknown'], ['alarms', 'with alarms']] as const;

/** Of what it is the name is the title; the rest reads from left to right. */
const Tile = ({ node, at, active }: { node: Node; at: number; active: boolean }) => {
  const { figures: { utilisation, memory, run_queue }, state, worst, alarms, why } = node;
  const [name, host] = parted(node.node);
  return <li class={`tile now-${state} worst-${worst ?? 'none'}`}>
    <a href={href('node', node.node)} data-at={at} tabIndex={active ? 0 : -1}>
      <span class="tile-name" title={node.node}><bdi>{name}</bdi></span>
      <span class="tile-host"><bdi>{host === '' ? '\u00a0' : host}</bdi></span>
      <span class="tile-line"><StateMark state={state} /> <span class="soft"><Since node={node} /></span></span>
      {state === 'up' ? <>
        <span class="tile-load"><span>load {format.value(utilisation, 'ratio')}</span><Bar share={utilisation} /></span>
        <span class="tile-line"><span>memory {format.value(memory, 'bytes')}</span> <span>queue {format.value(run_queue, null)}</span></span>
      </> : <span class="tile-why soft"><bdi>{why}</bdi></span>}
      <span class="tile-line"><Alarms count={alarms} worst={worst} /></span>
    </a>
  </li>;
};

const Tiles = ({ nodes }: { nodes: readonly Node[] }) => {
  const [width, setWidth] = useState(TILE_WIDTH_PX);
  const across = Math.max(1, Math.floor(width / TILE_WIDTH_PX));
  const { ref, rows: { from, to, above, below }, active, onKeyDown, onFocus } = useList<HTMLUListElement>(nodes.length, TILE_PX, across);
  useEffect(() => {
    const sizes = new ResizeObserver(([list]) => { if (list !== undefined) setWidth(list.contentRect.width); });
    if (ref.current !== null) sizes.observe(ref.current);
    return () => sizes.disconnect();
  }, []);
  return <ul class="tiles" ref={ref} onKeyDown={onKeyDown} onFocusIn={onFocus}
    style={{ paddingTop: `${above}px`, paddingBottom: `${below}px`, gridTemplateColumns: `repeat(${across}, minmax(0, 1fr))`, gridAutoRows: `${TILE_PX}px` }}>
    {nodes.slice(from * across, to * across).map((node, i) =>
      <Tile key={node.node} node={node} at={from * across + i} active={from * across + i === active} />)}
  </ul>;
};

const figure = (key: string, title: string, of: (node: Node) => number | null, write: (n: number | null) => string): Column<Node> =>
  ({ key, title, number: true, by: of, cell: node => write(of(node)) });

const COLUMNS: Column<Node>[] = [
  { key: 'node', title: 'Node', by: ({ node }) => node, cell: ({ node }) => <NodeLink node={node} row /> },
  { key: 'state', title: 'State', by: ({ state }) => state, cell: ({ state }) => <StateMark state={state} /> },
  figure('load', 'Load', ({ figures }) => figures.utilisation, n => format.value(n, 'ratio')),
  figure('queue', 'Run queue', ({ figures }) => figures.run_queue, n => format.value(n, null)),
  figure('memory', 'Memory', ({ figures }) => figures.memory, n => format.value(n, 'bytes')),
  figure('processes', 'Processes', ({ figures }) => figures.processes, n => format.value(n, null)),
  figure('mailbox', 'Mailbox', ({ figures }) => figures.mailbox_longest, n => format.value(n, null)),
  figure('in', 'In', ({ figures }) => figures.dist_in_per_s, n => format.rate(n, 'bytes')),
  figure('out', 'Out', ({ figures }) => figures.dist_out_per_s, n => format.rate(n, 'bytes')),
  figure('up', 'Up for', ({ figures }) => figures.uptime_ms, n => format.value(n, 'milliseconds')),
  { key: 'alarms', title: 'Alarms', by: ({ alarms }) => alarms, cell: ({ alarms, worst }) => <Alarms count={alarms} worst={worst} /> }
];

const AddNode = () => {
  const [name, setName] = useState('');
  const box = useRef<HTMLDetailsElement>(null);
  const { busy, failure, does } = useDeed();
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!await does(() => api.add(name.trim()))) return;
    setName('');
    if (box.current !== null) box.current.open = false;
  };
  return <details class="aside" ref={box}>
    <summary>Watch another node</summary>
    <form onSubmit={event => void add(event)}>
      <label class="field"><span>Name, as in shop@10.0.0.7</span><input type="text" value={name} autocomplete="off" spellcheck={false} onInput={event => setName(event.currentTarget.value)} /></label>
      <button type="submit" disabled={busy || name.trim() === ''}>Watch it</button>
    </form>
    <Trouble>{failure}</Trouble>
  </details>;
};

const TOPOLOGY_MS = 10_000;

const Groups = ({ nodes }: { nodes: readonly Node[] }) => {
  const { answer, failure } = useAsk('topology', api.topology, TOPOLOGY_MS);
  return answer === undefined ? <Waiting failure={failure} /> : <><Trouble>{failure}</Trouble><Graph topology={answer} nodes={nodes} /></>;
};

export const OverviewView = ({ route: { params } }: { route: Route }) => {
  const nodes = useLive(state => state.nodes);
  const known = useLive(state => state.cluster !== undefined);
  const { as = '', q = '', state = '', family = '' } = params;
  const order = (params.order ?? 'name') in ORDERS ? (params.order ?? 'name') as Order : 'name';
  const shown = useMemo(() => chosen(nodes.values(), { search: q, state, family, order }), [nodes, q, state, family, order]);
  const all = useMemo(() => families(nodes.values()), [nodes]);
  const to = (to: Params): string => href('overview', '', { ...params, ...to });
  return <>
    <div class="controls">
      <Tabs label="Shown as" now={as} tabs={[{ key: '', title: 'Tiles', to: to({ as: '' }) }, { key: 'table', title: 'Table', to: to({ as: 'table' }) }, { key: 'groups', title: 'Groups', to: to({ as: 'groups' }) }]} />
      <Search label="Search" value={q} onInput={q => tune({ q })} />
      <Choice label="State" value={state} values={STATES} onChange={state => tune({ state })} />
      {all.length > 1 && <Choice label="Family" value={family} values={[['', 'any'], ...all.map(each => [each, each] as const)]} onChange={family => tune({ family })} />}
      {as === '' && <Choice label="Sorted by" value={order} values={Object.entries(ORDERS).map(([key, [title]]) => [key, title] as const)} onChange={order => tune({ order })} />}
      <AddNode />
    </div>
    {q + state + family !== '' && <p class="soft" role="status">{format.plural(shown.length, 'node')} of {nodes.size.toLocaleString('en')}</p>}
    {!known ? <Waiting failure={undefined} />
      : shown.length === 0 ? <Empty>{nodes.size === 0 ? 'No node is known yet.' : 'No node is so.'}</Empty>
        : as === 'table' ? <Table label="Nodes" rows={shown} columns={COLUMNS} keyOf={({ node }) => node} sort={{ key: 'node', down: false }} open={({ node }) => go('node', node)} />
          : as === 'groups' ? <Groups nodes={shown} /> : <Tiles nodes={shown} />}
  </>;
};

