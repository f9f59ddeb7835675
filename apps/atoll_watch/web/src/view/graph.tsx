// SPDX-License-Identifier: Apache-2.0
// The nodes by their groups. A node of several groups stands in each, and a line joins its
// places; of the node at the pointer, or the one that has the focus, all connections show.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Node, Topology } from '../api.js';
import * as format from '../format.js';
import { laidOut, nearest, type Dot } from '../layout.js';
import { href } from '../route.js';
import { peers } from '../topology.js';
import { Alarms, LevelMark, markOf, Name, Since, StateMark } from './parts.js';

/** Fewer nodes have more room each. */
const cellOf = (count: number): number => count <= 150 ? 30 : count <= 500 ? 22 : 15;
/** More lines than this say nothing any more, until one is pointed at. */
const MOST_BOWS = 100;
const LETTER_PX = 7.5;

const path = (a: Dot, b: Dot): string => `M${a.x} ${a.y}L${b.x} ${b.y}`;

/** Bent, so that it does not run through the nodes between. */
const bow = (a: Dot, b: Dot): string => `M${a.x} ${a.y}Q${(a.x + b.x) / 2 + (b.y - a.y) * 0.2} ${(a.y + b.y) / 2 - (b.x - a.x) * 0.2} ${b.x} ${b.y}`;

const bows = ([first, ...rest]: readonly Dot[]): string[] => first === undefined ? [] : rest.map(dot => bow(first, dot));

const cut = (text: string, width: number): string => {
  const letters = [...text];
  const room = Math.max(4, Math.floor(width / LETTER_PX));
  return letters.length <= room ? text : letters.slice(0, room - 1).join('') + '…';
};

/** How dark a node is by its load: an idle one can still be seen. */
const shade = (node: Node): number => 0.3 + 0.7 * Math.min(1, node.figures.utilisation ?? 0);

const said = (node: Node): string =>
  `${node.node}, ${node.state}, load ${format.value(node.figures.utilisation, 'ratio')}, ${format.plural(node.alarms, 'alarm')}`;

export const Graph = ({ topology, nodes }: { topology: Topology; nodes: readonly Node[] }) => {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [active, setActive] = useState(0);
  const [seen, setSeen] = useState<string>();
  useEffect(() => {
    const sizes = new ResizeObserver(([box]) => { if (box !== undefined) setWidth(Math.floor(box.contentRect.width)); });
    if (ref.current !== null) sizes.observe(ref.current);
    return () => sizes.disconnect();
  }, []);

  const known = useMemo(() => new Map(nodes.map(node => [node.node, node])), [nodes]);
  const names = nodes.map(({ node }) => node).sort().join('\n');
  const { boxes, dots, height } = useMemo(() => {
    const grouped = new Set(topology.groups.flatMap(({ nodes }) => nodes));
    const groups = [
      ...topology.groups,
      // A node that has just been found may not stand in the topology yet.
      { name: topology.groups.length === 0 ? 'All nodes' : 'In no group', nodes: [...known.keys()].filter(node => !grouped.has(node)).sort() }
    ].map(({ name, nodes }) => ({ name, nodes: nodes.filter(node => known.has(node)) })).filter(({ nodes }) => nodes.length > 0);
    return laidOut(groups, Math.max(200, width), cellOf(known.size));
  }, [topology, names, width]);
  const connected = useMemo(() => peers(topology), [topology]);
  const places = useMemo(() => {
    const of = new Map<string, Dot[]>();
    for (const dot of dots) of.set(dot.node, [...of.get(dot.node) ?? [], dot]);
    return of;
  }, [dots]);

  const joined = useMemo(() => {
    const all = [...places.values()].flatMap(bows);
    return all.length > MOST_BOWS ? '' : all.join('');
  }, [places]);
  const lines = useMemo(() => {
    if (seen === undefined) return '';
    const mine = places.get(seen) ?? [];
    const others = [...connected.get(seen) ?? []].flatMap(peer => places.get(peer) ?? []);
    return [...bows(mine), ...mine.flatMap(from => others.map(to => path(from, to)))].join('');
  }, [seen, places, connected]);

  const onKeyDown = (event: KeyboardEvent): void => {
    const to = nearest(dots, active, event.key);
    if (to === undefined) return;
    event.preventDefault();
    setActive(to);
    ref.current?.querySelector<SVGElement>(`[data-dot="${to}"]`)?.focus();
  };
  const onSee = (event: Event): void => {
    const at = (event.target as Element).closest<SVGElement>('[data-dot]')?.dataset.dot;
    if (at === undefined) return;
    setSeen(dots[Number(at)]?.node);
    if (event.type === 'focusin') setActive(Number(at));
  };

  const cell = cellOf(known.size);
  const size = cell * 0.62;
  const node = seen === undefined ? undefined : known.get(seen);
  return <div class="graph">
    <p class="seen">{node === undefined ? <span class="soft">The node that is pointed at shows whom it is connected with. The stronger its colour, the more load it has.</span>
      : <><Name>{node.node}</Name> <StateMark state={node.state} /> <span><Since node={node} />, load {format.value(node.figures.utilisation, 'ratio')}, {format.value(node.figures.memory, 'bytes')}, connected with {format.plural(connected.get(node.node)?.size ?? 0, 'node')}</span> <Alarms count={node.alarms} worst={node.worst} /></>}</p>
    <div ref={ref}>
      <svg width={width} height={height} onKeyDown={onKeyDown} onFocusIn={onSee} onPointerOver={onSee} role="group" aria-label="Nodes by group">
        {boxes.map(({ name, count, x, y, width, height }) => <g key={name}>
          <rect class="group" x={x + 0.5} y={y + 0.5} width={width - 1} height={height - 1} rx="8" />
          <text class="group-name" x={x + 12} y={y + 19}>{cut(name, width - 24 - LETTER_PX * (String(count).length + 1))} <tspan class="group-count">{count}</tspan><title>{name}</title></text>
        </g>)}
        <path class="joined" d={joined} />
        <path class="lines" d={lines} />
        {dots.map(({ node: name, x, y }, i) => {
          const node = known.get(name);
          if (node === undefined) return null;
          return <a key={i} href={href('node', name)} data-dot={i} tabIndex={i === active ? 0 : -1} aria-label={said(node)}
            class={`dot is-${node.worst ?? node.state}${name === seen ? ' seen' : ''}`}>
            <rect class="hit" x={x - cell / 2} y={y - cell / 2} width={cell} height={cell} />
            <path d={markOf(node)} transform={`translate(${x - size / 2} ${y - size / 2}) scale(${size / 12})`} fill-opacity={node.state === 'up' && node.alarms === 0 ? shade(node) : 1} fill-rule="evenodd" />
          </a>;
        })}
      </svg>
    </div>
    <p class="legend soft"><StateMark state="up" /><StateMark state="silent" /><StateMark state="down" /><StateMark state="refused" /><StateMark state="unknown" />
      <span>with an alarm:</span><LevelMark level="critical" /><LevelMark level="major" /><LevelMark level="minor" /><LevelMark level="warning" /></p>
  </div>;
};
