// SPDX-License-Identifier: Apache-2.0
// What the page knows of the cluster, and how it learns: a pure function of what came in.
//
// A snapshot is asked for when the stream of events is open; what the stream says until the
// snapshot is there is kept, and comes after it. So nothing that happened between the two is
// missed, and an event that the snapshot knew already changes nothing in the end.
import type { Alarm, Cluster, Node, Notification, Severity } from './api.js';

export interface State {
  link: Link;
  cluster: Cluster | undefined;
  /** What to add to the clock of the browser to have that of the watch. */
  skew: number;
  nodes: ReadonlyMap<string, Node>;
  /** Those that stand. */
  alarms: ReadonlyMap<number, Alarm>;
  /** What came while the page was open: the last ones first, so many at most. */
  cleared: readonly Alarm[];
  notifications: readonly Notification[];
  /** Events that came before the snapshot; undefined once it is there. */
  early: readonly Event[] | undefined;
}

export type Link =
  | { is: 'connecting' }
  | { is: 'live' }
  /** `since` is of the browser's clock. */
  | { is: 'lost'; since: number; why: string }
  /** The server wants a token. */
  | { is: 'locked' };

export interface Snapshot { cluster: Cluster; nodes: readonly Node[]; alarms: readonly Alarm[] }

/** What the stream says. */
export type Event =
  | { event: 'cluster'; data: Cluster; now: number }
  | { event: 'nodes'; data: readonly Node[] }
  | { event: 'gone'; data: { node: string } }
  | { event: 'alarm'; data: Alarm }
  | { event: 'notification'; data: Notification };

export type Input =
  | Event
  | { event: 'opened' }
  | { event: 'snapshot'; data: Snapshot; now: number }
  | { event: 'lost'; why: string; now: number }
  | { event: 'locked' };

const KEPT = 500;

export const initial: State = {
  link: { is: 'connecting' }, cluster: undefined, skew: 0, nodes: new Map(), alarms: new Map(), cleared: [], notifications: [], early: []
};

/** All that came together, in its order: what is copied is copied once. */
export const stepped = (state: State, inputs: readonly Input[]): State => {
  const draft = new Draft(state);
  for (const input of inputs) draft.take(input);
  return draft.state;
};

class Draft {
  private nodes: Map<string, Node> | undefined;
  private alarms: Map<number, Alarm> | undefined;

  constructor(public state: State) {}

  take(input: Input): void {
    switch (input.event) {
      case 'opened': return this.set({ early: [] });
      case 'locked': return this.set({ link: { is: 'locked' } });
      case 'lost': return this.lost(input.why, input.now);
      case 'snapshot': return this.snapshot(input.data, input.now);
      default: return this.state.early === undefined ? this.happened(input) : this.set({ early: [...this.state.early, input] });
    }
  }

  private set(what: Partial<State>): void {
    this.state = { ...this.state, ...what };
  }

  /** The first failure is since when; the last one is why. */
  private lost(why: string, now: number): void {
    const { link } = this.state;
    this.set({ link: { is: 'lost', since: link.is === 'lost' ? link.since : now, why } });
  }

  private snapshot({ cluster, nodes, alarms }: Snapshot, now: number): void {
    const early = this.state.early ?? [];
    this.nodes = new Map(nodes.map(node => [node.node, node]));
    this.alarms = new Map(alarms.map(alarm => [alarm.id, alarm]));
    this.set({ link: { is: 'live' }, cluster, skew: cluster.now_ms - now, nodes: this.nodes, alarms: this.alarms, early: undefined });
    for (const event of early) this.happened(event);
  }

  private happened(event: Event): void {
    switch (event.event) {
      case 'cluster': return this.set({ cluster: event.data, skew: event.data.now_ms - event.now });
      case 'nodes': {
        const nodes = this.ownNodes();
        for (const node of event.data) nodes.set(node.node, node);
        return;
      }
      case 'gone': {
        this.ownNodes().delete(event.data.node);
        return;
      }
      case 'alarm': return this.alarm(event.data);
      case 'notification': return this.set({ notifications: newest(event.data, this.state.notifications) });
    }
  }

  private alarm(alarm: Alarm): void {
    const alarms = this.ownAlarms();
    if (alarm.state !== 'cleared') {
      alarms.set(alarm.id, alarm);
      return;
    }
    alarms.delete(alarm.id);
    this.set({ cleared: newest(alarm, this.state.cleared) });
  }

  private ownNodes(): Map<string, Node> {
    if (this.nodes === undefined) this.set({ nodes: this.nodes = new Map(this.state.nodes) });
    return this.nodes as Map<string, Node>;
  }

  private ownAlarms(): Map<number, Alarm> {
    if (this.alarms === undefined) this.set({ alarms: this.alarms = new Map(this.state.alarms) });
    return this.alarms as Map<number, Alarm>;
  }
}

/** One more in front, in place of what it was before. */
const newest = <Item extends { id: number }>(item: Item, items: readonly Item[]): Item[] =>
  [item, ...items.filter(({ id }) => id !== item.id)].slice(0, KEPT);

export const SEVERITIES: readonly Severity[] = ['critical', 'major', 'minor', 'warning'];

/** The worst first, and of those the last one. */
export const byUrgency = (a: Alarm, b: Alarm): number =>
  SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || b.raised_ms - a.raised_ms || b.id - a.id;
