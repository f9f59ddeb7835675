// SPDX-License-Identifier: Apache-2.0
// The frame: where one can go, how the cluster is in a line, whether the page is live.
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import * as api from '../api.js';
import { plural, time } from '../format.js';
import { live } from '../live.js';
import { choose, look } from '../look.js';
import { href, type Route, type View } from '../route.js';
import { SEVERITIES } from '../state.js';
import { AlarmsView } from './alarms.js';
import { ConnectionsView } from './connections.js';
import { useDeed, useLive, useLook, useRoute } from './hooks.js';
import { MetricsView } from './metrics.js';
import { NodeView } from './node.js';
import { NotificationsView } from './notifications.js';
import { OverviewView } from './overview.js';
import { LevelMark, Trouble } from './parts.js';
import { TopologyView } from './topology.js';
import { TrafficView } from './traffic.js';

const TITLES: Record<View, string> = {
  overview: 'Overview', node: 'Node', metrics: 'Metrics', alarms: 'Alarms',
  notifications: 'Notifications', topology: 'Topology', connections: 'Connections', traffic: 'Traffic'
};

const SHOWN: Record<View, (props: { route: Route }) => ComponentChildren> = {
  overview: OverviewView, node: NodeView, metrics: MetricsView, alarms: AlarmsView,
  notifications: NotificationsView, topology: TopologyView, connections: ConnectionsView, traffic: TrafficView
};

const LookSwitch = () => {
  useLook();
  const other = look() === 'dark' ? 'light' : 'dark';
  return <button type="button" class="look" onClick={() => choose(other)} aria-label={`Switch to ${other}`}>{other === 'dark' ? 'Dark' : 'Light'}</button>;
};

const LinkLine = () => {
  const link = useLive(state => state.link);
  switch (link.is) {
    case 'live': return <p class="link is-up" role="status">live</p>;
    case 'connecting': return <p class="link soft" role="status">connecting…</p>;
    case 'locked': return null;
    case 'lost': return <p class="link is-lost" role="status">
      Connection lost since {time(link.since, Date.now())}, trying again. {link.why} What is shown is as it was then.
    </p>;
  }
};

const Glance = () => {
  const cluster = useLive(state => state.cluster);
  if (cluster === undefined) return null;
  const { nodes, alarms } = cluster;
  const all = Object.values(nodes).reduce((sum, n) => sum + n, 0);
  const worst = SEVERITIES.find(severity => alarms[severity] > 0);
  return <p class="glance">
    <a href={href('overview')}>{nodes.up.toLocaleString('en')} of {plural(all, 'node')} up</a>
    {(['silent', 'down', 'refused', 'unknown'] as const).filter(state => nodes[state] > 0)
      .map(state => <a key={state} href={href('overview', '', { state })}>{nodes[state].toLocaleString('en')} {state}</a>)}
    {worst === undefined ? <a href={href('alarms')}>no alarm</a>
      : SEVERITIES.filter(severity => alarms[severity] > 0).map(severity =>
        <a key={severity} href={href('alarms', '', { severity })}><LevelMark level={severity}>{alarms[severity].toLocaleString('en')} {severity}</LevelMark></a>)}
  </p>;
};

/** What the watch itself left out: nobody is to take a part for the whole. */
const About = () => {
  const cluster = useLive(state => state.cluster);
  if (cluster === undefined) return null;
  const left = Object.entries(cluster.counts).filter(([, n]) => n > 0);
  return <footer class="about">
    <p>Each node is asked every {(cluster.period_ms / 1000).toLocaleString('en')} s, since {time(cluster.started_ms, live.now())}. Atoll {cluster.version}.
      {left.length > 0 && ` Left out: ${left.map(([name, n]) => `${name.replace(/_/g, ' ')} ${n.toLocaleString('en')}`).join(', ')}.`}</p>
    <p><kbd>/</kbd> searches; in tiles, tables and trees the arrow keys move and <kbd>Enter</kbd> opens.</p>
  </footer>;
};

/** Without a token there is nothing to see. */
const Locked = () => {
  const [token, setToken] = useState('');
  const { busy, failure, does } = useDeed();
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await does(() => api.enter(token.trim()))) live.open();
  };
  return <main class="locked" id="main">
    <h2>A token is needed</h2>
    <p>Open the link that <code>bin/atoll watch</code> printed when it was started, or put its token here.</p>
    <form onSubmit={event => void enter(event)}>
      <label class="field"><span>Token</span><input type="password" value={token} autocomplete="off" onInput={event => setToken(event.currentTarget.value)} /></label>
      <button type="submit" disabled={busy || token.trim() === ''}>Enter</button>
    </form>
    <Trouble>{failure}</Trouble>
  </main>;
};

/** A fault of ours in one view leaves the way to the others. */
class Shield extends Component<{ children: ComponentChildren }, { fault: string | undefined }> {
  override state = { fault: undefined };
  static override getDerivedStateFromError(error: unknown): { fault: string } {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
  override componentDidCatch(error: unknown): void { console.error(error); }
  override render() {
    return this.state.fault === undefined ? this.props.children
      : <Trouble>{`This view cannot be drawn, by a fault of the page: ${this.state.fault}`}</Trouble>;
  }
}

const toSearch = (event: KeyboardEvent): void => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof Element && event.target.matches('input, textarea, select')) return;
  const box = document.querySelector<HTMLInputElement>('main input[type=search]');
  if (box === null) return;
  event.preventDefault();
  box.focus();
  box.select();
};

export const App = () => {
  const route = useRoute();
  const locked = useLive(state => state.link.is === 'locked');
  const name = useLive(state => state.cluster?.name ?? '');
  const standing = useLive(state => state.alarms.size);
  const top = useRef<HTMLHeadingElement>(null);
  const drawn = useRef(`${route.view}/${route.of}`);
  const title = route.view === 'node' ? route.of : TITLES[route.view];

  useEffect(() => {
    addEventListener('keydown', toSearch);
    return () => removeEventListener('keydown', toSearch);
  }, []);
  useEffect(() => {
    document.title = [standing > 0 ? `(${standing})` : '', title, name, 'Atoll watch'].filter(part => part !== '').join(' · ');
  }, [standing, title, name]);
  // Another view begins at its top, for the eyes and for a screen reader.
  useEffect(() => {
    const is = `${route.view}/${route.of}`;
    if (drawn.current === is || route.view === 'alarms' && drawn.current.startsWith('alarms/')) { drawn.current = is; return; }
    drawn.current = is;
    scrollTo(0, 0);
    top.current?.focus();
  }, [route]);

  const Shown = SHOWN[route.view];
  return <>
    <a class="skip" href="#main" onClick={event => { event.preventDefault(); top.current?.focus(); }}>To the content</a>
    <header class="top">
      <h1>Atoll watch {name !== '' && <span><bdi>{name}</bdi></span>}</h1>
      {!locked && <nav class="views" aria-label="Views">
        {(Object.keys(TITLES) as View[]).filter(view => view !== 'node').map(view =>
          <a key={view} href={href(view)} aria-current={view === route.view ? 'page' : undefined}>{TITLES[view]}</a>)}
      </nav>}
      <LookSwitch />
      {!locked && <div class="now"><Glance /><LinkLine /></div>}
    </header>
    {locked ? <Locked /> : <>
      <main id="main">
        <h2 ref={top} tabIndex={-1}><bdi>{title}</bdi></h2>
        <Shield key={`${route.view}/${route.of}`}><Shown route={route} /></Shield>
      </main>
      <About />
    </>}
  </>;
};
