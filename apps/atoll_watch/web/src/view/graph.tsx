// SPDX-License-Identifier: Apache-2.0
// The nodes by their groups, or by their families where there are none. A node of several groups stands in each, and a line joins its
// places. Few nodes have their names beside them, and few connections all show; of the node at
// the pointer, or the one that has the focus, they show anyhow.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Node, Topology } from '../api.js';
import * as format from '../format.js';
import { closest, laidOut, nearest, type Cell, type Dot } from '../layout.js';
import { families } from '../nodes.js';
import { href } from '../route.js';
import { sorted } from '../sort.js';
import { peers } from '../topology.js';
import { Alarms, LevelMark, markOf, Name, parted, Since, StateMark } from './parts.js';

const MOST_NAMED = 60;
const LETTER_PX = 7.5;
const LONGEST_PX = 170;

/** What stands beside a node: its name, or the part of it that tells it from the others; nothing where there are many. */
const titles = (nodes: readonly Node[]): ((name: string) => string) => {
  if (nodes.length > MOST_NAMED) return () => '';
  const short = new Set(nodes.map(({ node }) => parted(node)[0]));
  return short.size === nodes.length ? name => parted(name)[0] : name => name;
};

/** Fewer nodes have more room each. */
const cellOf = (count: number, longest: number, width: number): Cell => {
  const height = count <= 150 ? 30 : count <= 500 ? 22 : 15;
  // Two stand beside each other on a narrow screen.
  const room = Math.min(LONGEST_PX, Math.max(60, Math.floor((width - 24) / 2) - height));
  return { width: height + (longest === 0 ? 0 : Math.min(room, Math.ceil(longest * LETTER_PX) + 8)), height };
};

/** More lines than this say nothing any more, until one is pointed at. */
const MOST_LINES = 100;

/** Where there are no groups. */
const byFamily = (nodes: readonly Node[]): { name: string; nodes: string[] }[] => families(nodes).map(name =>
  ({ name, nodes: sorted(nodes.filter(({ family }) => family === name).map(({ node }) => node), node => node, false) }));

const path = (a: Dot, b: Dot): string => `M${a.x} ${a.y}L${b.x} ${b.y}`;

const MOST_BENT_PX = 40;

/** Bent, so that it does not run through the nodes between. */
const bow = (a: Dot, b: Dot): string => {
  const bend = Math.min(0.2, MOST_BENT_PX / Math.max(1, Math.hypot(b.x - a.x, b.y - a.y)));
  return `M${a.x} ${a.y}Q${(a.x + b.x) / 2 + (b.y - a.y) * bend} ${(a.y + b.y) / 2 - (b.x - a.x) * bend} ${b.x} ${b.y}`;
};

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
  const title = useMemo(() => titles(nodes), [names]);
  const cell = useMemo(() => cellOf(nodes.length, Math.max(0, ...nodes.map(({ node }) => title(node).length)), width), [title, width]);
  const { boxes, dots, height } = useMemo(() => {
    const grouped = new Set(topology.groups.flatMap(({ nodes }) => nodes));
    const groups = [
      ...topology.groups,
      // A node that has just been found may not stand in the topology yet.
      ...(topology.groups.length === 0 ? byFamily(nodes) : [{ name: 'In no group', nodes: [...known.keys()].filter(node => !grouped.has(node)).sort() }])
    ].map(({ name, nodes }) => ({ name, nodes: nodes.filter(node => known.has(node)) })).filter(({ nodes }) => nodes.length > 0);
    return laidOut(groups, Math.max(200, width), cell);
  }, [topology, names, width]);
  const connected = useMemo(() => peers(topology), [topology]);
  const places = useMemo(() => {
    const of = new Map<string, Dot[]>();
    for (const dot of dots) of.set(dot.node, [...of.get(dot.node) ?? [], dot]);
    return of;
  }, [dots]);

  const joined = useMemo(() => {
    const all = [...places.values()].flatMap(bows);
    return all.length > MOST_LINES ? '' : all.join('');
  }, [places]);
  const threads = useMemo(() => {
    const all = [...topology.links, ...topology.circuits].flatMap(({ from, to }) => {
      const ends = closest(places.get(from) ?? [], places.get(to) ?? []);
      return ends === undefined ? [] : [bow(...ends)];
    });
    return all.length > MOST_LINES ? '' : all.join('');
  }, [places, topology]);
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

  const size = cell.height * 0.62;
  const node = seen === undefined ? undefined : known.get(seen);
  return <div class="graph">
    <p class="seen">{node === undefined ? <span class="soft">{threads === '' ? 'The node that is pointed at shows whom it is connected with.' : 'Lines are connections.'} The stronger the colour of a node, the more load it has.</span>
      : <><Name>{node.node}</Name> <StateMark state={node.state} /> <span><Since node={node} />, load {format.value(node.figures.utilisation, 'ratio')}, {format.value(node.figures.memory, 'bytes')}, connected with {format.plural(connected.get(node.node)?.size ?? 0, 'node')}</span> <Alarms count={node.alarms} worst={node.worst} /></>}</p>
    <div ref={ref}>
      <svg width={width} height={height} onKeyDown={onKeyDown} onFocusIn={onSee} onPointerOver={onSee} role="group" aria-label="Nodes by group">
        {boxes.map(({ name, x, y, width, height }) => <rect key={name} class="group" x={x + 0.5} y={y + 0.5} width={width - 1} height={height - 1} rx="8" />)}
        <path class="threads" d={threads} />
        <path class="joined" d={joined} />
        <path class="lines" d={lines} />
        {boxes.map(({ name, count, x, y, width }) =>
          <text key={name} class="group-name" x={x + 12} y={y + 19}>{cut(name, width - 24 - LETTER_PX * (String(count).length + 1))} <tspan class="group-count">{count}</tspan><title>{name}</title></text>)}
        {dots.map(({ node: name, x, y }, i) => {
          const node = known.get(name);
          if (node === undefined) return null;
          return <a key={i} href={href('node', name)} data-dot={i} tabIndex={i === active ? 0 : -1} aria-label={said(node)}
            class={`dot is-${node.worst ?? node.state}${name === seen ? ' seen' : ''}`}>
            <rect class="hit" x={x - cell.height / 2} y={y - cell.height / 2} width={cell.width} height={cell.height} />
            <path d={markOf(node)} transform={`translate(${x - size / 2} ${y - size / 2}) scale(${size / 12})`} fill-opacity={node.state === 'up' && node.alarms === 0 ? shade(node) : 1} fill-rule="evenodd" />
          </a>;
        })}
        {/* A link is called by its whole name; this one may be cut. */}
        <g aria-hidden="true" class="dot-names">
          {dots.map(({ node, x, y }, i) => title(node) !== '' && known.has(node)
            && <text key={i} class="dot-name" x={x + cell.height / 2 - 2} y={y + 4}>{cut(title(node), cell.width - cell.height)}</text>)}
        </g>
      </svg>
    </div>
    <p class="legend soft"><StateMark state="up" /><StateMark state="silent" /><StateMark state="down" /><StateMark state="refused" /><StateMark state="unknown" />
      <span>with an alarm:</span><LevelMark level="critical" /><LevelMark level="major" /><LevelMark level="minor" /><LevelMark level="warning" /></p>
  </div>;
};
