// SPDX-License-Identifier: Apache-2.0
// Which nodes the overview shows, and in which order.
import type { Node } from './api.js';
import { finder, sorted, type Sortable } from './sort.js';
import { SEVERITIES } from './state.js';

export const ORDERS = {
  name: ['Name', node => node.node],
  trouble: ['Trouble', node => trouble(node)],
  load: ['Load', node => node.figures.utilisation],
  memory: ['Memory', node => node.figures.memory],
  queue: ['Run queue', node => node.figures.run_queue],
  mailbox: ['Longest mailbox', node => node.figures.mailbox_longest],
  since: ['Latest change', node => node.since_ms]
} as const satisfies Record<string, readonly [string, (node: Node) => Sortable]>;

export type Order = keyof typeof ORDERS;

const STATES = ['down', 'silent', 'refused', 'unknown', 'up'];

/** The worst has most: by its alarms, then by its state. */
const trouble = ({ worst, alarms, state }: Node): number =>
  (worst === null ? 0 : SEVERITIES.length - SEVERITIES.indexOf(worst)) * 1e6 + Math.min(alarms, 9999) * 10 + STATES.length - STATES.indexOf(state);

export interface Wanted { search: string; state: string; family: string; order: Order }

/** By name; or with the most in front, and by name among equals. */
export const chosen = (nodes: Iterable<Node>, { search, state, family, order }: Wanted): Node[] => {
  const found = finder(search);
  const mine = [...nodes].filter(node => (state === '' || node.state === state || state === 'alarms' && node.alarms > 0) && (family === '' || node.family === family) && found(node.node));
  const named = sorted(mine, node => node.node, false);
  return order === 'name' ? named : sorted(named, ORDERS[order][1], true);
};

/** The families of nodes, by name. */
export const families = (nodes: Iterable<Node>): string[] => sorted([...new Set([...nodes].map(({ family }) => family))], family => family, false);
