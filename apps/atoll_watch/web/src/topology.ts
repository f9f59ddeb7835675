// SPDX-License-Identifier: Apache-2.0
// What can be read off a topology: who is connected with whom, which groups are, and how fast.
import type { Link, Topology } from './api.js';

/** With whom each node is connected, over a link or a circuit. */
export const peers = ({ links, circuits }: Pick<Topology, 'links' | 'circuits'>): Map<string, Set<string>> => {
  const of = new Map<string, Set<string>>();
  const add = (a: string, b: string): void => { (of.get(a) ?? of.set(a, new Set()).get(a))?.add(b); };
  for (const { from, to } of [...links, ...circuits]) {
    add(from, to);
    add(to, from);
  }
  return of;
};

export interface Between { a: string; b: string; links: number; gateways: string[] }

/** Which groups have links with each other, and the nodes that are in both. */
export const between = ({ nodes, groups, links }: Pick<Topology, 'nodes' | 'groups' | 'links'>): Between[] => {
  const of = new Map(nodes.map(({ node, groups }) => [node, groups]));
  const found = new Map<string, Between>();
  const entry = (one: string, other: string): Between => {
    const [a, b] = one < other ? [one, other] : [other, one];
    const key = JSON.stringify([a, b]);
    const is = found.get(key) ?? { a, b, links: 0, gateways: [] };
    found.set(key, is);
    return is;
  };
  for (const { from, to } of links) {
    const [here, there] = [of.get(from) ?? [], of.get(to) ?? []];
    // A link within a group leads out of none.
    if (here.some(group => there.includes(group))) continue;
    for (const a of here) for (const b of there) entry(a, b).links += 1;
  }
  for (const { node, groups: mine } of nodes) {
    mine.forEach((a, i) => mine.slice(i + 1).forEach(b => entry(a, b).gateways.push(node)));
  }
  const order = new Map(groups.map(({ name }, i) => [name, i]));
  return [...found.values()].sort((x, y) => (order.get(x.a) ?? 0) - (order.get(y.a) ?? 0) || (order.get(x.b) ?? 0) - (order.get(y.b) ?? 0));
};

export const keyOf = ({ from, to, kind }: Link): string => JSON.stringify([from, to, kind]);

export interface Rate { there: number | null; back: number | null }

/** Bytes in a second between two answers; what was not there before, or began again, has none. */
export const rates = (before: Topology | undefined, now: Topology): Map<string, Rate> => {
  const seconds = before === undefined ? 0 : (now.at_ms - before.at_ms) / 1000;
  if (before === undefined || seconds <= 0) return new Map();
  const was = new Map([...before.links, ...before.circuits].map(link => [keyOf(link), link]));
  const gained = (from: number | null | undefined, to: number | null): number | null =>
    from === null || from === undefined || to === null || to < from ? null : (to - from) / seconds;
  return new Map([...now.links, ...now.circuits].map(link => {
    const old = was.get(keyOf(link));
    return [keyOf(link), { there: gained(old?.bytes_there, link.bytes_there), back: gained(old?.bytes_back, link.bytes_back) }];
  }));
};
