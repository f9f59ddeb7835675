// SPDX-License-Identifier: Apache-2.0
// Small things that several views have. Where a colour says something, a shape and a word
// say it too.
import type { ComponentChildren } from 'preact';
import type { Level, Node, Severity, State } from '../api.js';
import { plural, span } from '../format.js';
import { live } from '../live.js';
import { href } from '../route.js';

const STATES: Record<State, string> = {
  up: 'M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z',
  silent: 'M6 2a4 4 0 0 0 0 8zM6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9zm0 1a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7z',
  down: 'M2 3.4L3.4 2L6 4.6L8.6 2L10 3.4L7.4 6L10 8.6L8.6 10L6 7.4L3.4 10L2 8.6L4.6 6z',
  refused: 'M6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9zM3 5.2v1.6h6v-1.6z',
  unknown: 'M6 1.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9zm0 1.2a3.3 3.3 0 1 0 0 6.6a3.3 3.3 0 1 0 0-6.6z'
};

const LEVELS: Record<Level, string> = {
  critical: 'M1.5 1.5h9v9h-9z',
  major: 'M6 1l5.5 10h-11z',
  minor: 'M6 .5L11.5 6L6 11.5L.5 6z',
  warning: 'M1.5 1.5h9v9h-9zm1.2 1.2v6.6h6.6v-6.6z',
  info: 'M5 1h2v2h-2zM5 4.5h2v6.5h-2z'
};

const Mark = ({ d }: { d: string }) => <svg class="mark" viewBox="0 0 12 12" aria-hidden="true"><path d={d} fill-rule="evenodd" /></svg>;

export const StateMark = ({ state }: { state: State }) => <span class={`state is-${state}`}><Mark d={STATES[state]} /><span class="word">{state}</span></span>;

export const LevelMark = ({ level, children }: { level: Level; children?: ComponentChildren }) =>
  <span class={`level is-${level}`}><Mark d={LEVELS[level]} />{children ?? <span class="word">{level}</span>}</span>;

/** The shape of a node: of how it is, or of its worst alarm while it is up. */
export const markOf = ({ state, worst }: Node): string => state === 'up' && worst !== null ? LEVELS[worst] : STATES[state];

/** `2 alarms, worst critical`. */
export const Alarms = ({ count, worst }: { count: number; worst: Severity | null }) => count === 0 || worst === null
  ? <span class="soft">no alarm</span>
  : <LevelMark level={worst}>{count === 1 ? `1 alarm, ${worst}` : `${plural(count, 'alarm')}, worst ${worst}`}</LevelMark>;

/** What stands before the last `@` of a node's name, and what comes after it. */
export const parted = (name: string): [string, string] => {
  const at = name.lastIndexOf('@');
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at)];
};

/** A name from elsewhere: the direction of its letters stays within it. */
export const Name = ({ children }: { children: string }) => <bdi class="name" title={children}>{children}</bdi>;

/** A sentence in a row: there is more room for it than for a name. */
export const Long = ({ children }: { children: string }) => <bdi class="name long" title={children}>{children}</bdi>;

/** Within a row that Enter opens, Tab goes past it. */
export const NodeLink = ({ node, row = false }: { node: string; row?: boolean }) =>
  <a href={href('node', node)} tabIndex={row ? -1 : 0} class="to-node"><Name>{node}</Name></a>;

/** Several, of which the first are named. */
export const Nodes = ({ nodes, most = 6, row = true }: { nodes: readonly string[]; most?: number; row?: boolean }) => nodes.length === 0 ? <span class="soft">none</span>
  : <>{nodes.slice(0, most).map((node, i) => <span key={node}>{i > 0 && ', '}<NodeLink node={node} row={row} /></span>)}{nodes.length > most && ` and ${nodes.length - most} more`}</>;

export const Since = ({ node }: { node: Pick<Node, 'since_ms'> }) => <>for {span(Math.max(0, live.now() - node.since_ms))}</>;

export const Bar = ({ share }: { share: number | null }) =>
  <svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="bar-all" width="100" height="6" /><rect class="bar-part" width={100 * Math.min(1, Math.max(0, share ?? 0))} height="6" />
  </svg>;

export const Trouble = ({ children }: { children: string | undefined }) => children === undefined ? null : <p class="trouble" role="alert">{children}</p>;

/** What stands until the first answer is there. */
export const Waiting = ({ failure }: { failure: string | undefined }) =>
  failure === undefined ? <p class="soft" role="status">Asking…</p> : <Trouble>{failure}</Trouble>;

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="soft empty">{children}</p>;

export interface Tab { key: string; title: string; to: string }

export const Tabs = ({ label, tabs, now }: { label: string; tabs: Tab[]; now: string }) =>
  <nav class="tabs" aria-label={label}>
    {tabs.map(({ key, title, to }) => <a key={key} href={to} aria-current={key === now ? 'page' : undefined}>{title}</a>)}
  </nav>;

export const Choice = ({ label, value, values, onChange }: { label: string; value: string; values: readonly (readonly [string, string])[]; onChange: (to: string) => void }) =>
  <label class="field"><span>{label}</span>
    <select value={value} onChange={event => onChange(event.currentTarget.value)}>
      {values.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
    </select>
  </label>;

export const Search = ({ label, value, onInput }: { label: string; value: string; onInput: (to: string) => void }) =>
  <label class="field search"><span>{label}</span>
    <input type="search" value={value} autocomplete="off" spellcheck={false} onInput={event => onInput(event.currentTarget.value)} />
  </label>;
