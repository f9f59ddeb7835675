// SPDX-License-Identifier: Apache-2.0
// One node: how it is, and a tab for each thing that it can be asked.
import * as api from '../api.js';
import * as format from '../format.js';
import { go } from '../go.js';
import { href, type Route } from '../route.js';
import { byUrgency } from '../state.js';
import { AlarmTable } from './alarms.js';
import { useDeed, useLive } from './hooks.js';
import { NodeConnections } from './node_connections.js';
import { NodeMetrics } from './node_metrics.js';
import { Processes } from './node_processes.js';
import { Supervision } from './node_supervision.js';
import { Tables } from './node_tables.js';
import { Alarms, Empty, Since, StateMark, Tabs, Trouble } from './parts.js';

const TABS = { '': 'Metrics', connections: 'Connections', processes: 'Processes', supervision: 'Supervision tree', tables: 'ETS tables', alarms: 'Alarms' };

const NodeAlarms = ({ node }: { node: string }) => {
  const all = useLive(state => state.alarms);
  const mine = [...all.values()].filter(alarm => alarm.node === node).sort(byUrgency);
  return <>
    {mine.length === 0 ? <Empty>No alarm of this node stands.</Empty> : <AlarmTable alarms={mine} open={({ id }) => go('alarms', String(id))} />}
    <p><a href={href('alarms', '', { show: 'history', node })}>Those that were cleared</a></p>
  </>;
};

const Forget = ({ node }: { node: string }) => {
  const { busy, failure, does } = useDeed();
  return <details class="aside">
    <summary>Watch it no more</summary>
    <p>The agent goes, what was measured is not shown any more, and its alarms are cleared. It can be watched again at any time.</p>
    <button type="button" disabled={busy} onClick={() => void does(() => api.remove(node)).then(done => { if (done) go('overview'); })}>Watch it no more</button>
    <Trouble>{failure}</Trouble>
  </details>;
};

export const NodeView = ({ route: { of, params } }: { route: Route }) => {
  const node = useLive(state => state.nodes.get(of));
  const known = useLive(state => state.cluster !== undefined);
  const tab = params.tab ?? '';
  if (node === undefined) return known ? <Empty>No node of this name is watched.</Empty> : null;
  const { figures } = node;
  const facts: [string, string][] = [
    ['Load', format.value(figures.utilisation, 'ratio')],
    ['Run queue', format.value(figures.run_queue, null)],
    ['Memory', format.value(figures.memory, 'bytes')],
    ['Processes', `${format.value(figures.processes, null)} of ${format.value(figures.processes_limit, null)}`],
    ['Reductions', format.rate(figures.reductions_per_s, null)],
    ['Longest mailbox', format.value(figures.mailbox_longest, null)],
    ['Other nodes, in', format.rate(figures.dist_in_per_s, 'bytes')],
    ['Other nodes, out', format.rate(figures.dist_out_per_s, 'bytes')],
    ['Up for', format.value(figures.uptime_ms, 'milliseconds')]
  ];
  return <>
    <p class="lead"><StateMark state={node.state} /> <Since node={node} /> · <a href={href('node', of, { tab: 'alarms' })}><Alarms count={node.alarms} worst={node.worst} /></a>{node.by_hand && ' · added by hand'}</p>
    {node.why !== null && <Trouble>{`It cannot be watched: ${node.why}`}</Trouble>}
    <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    <Tabs label="Of this node" now={tab} tabs={Object.entries(TABS).map(([key, title]) => ({ key, title, to: href('node', of, { tab: key }) }))} />
    {tab === 'connections' ? <NodeConnections node={of} />
      : tab === 'processes' ? <Processes node={of} params={params} />
        : tab === 'supervision' ? <Supervision node={of} root={params.root ?? ''} />
          : tab === 'tables' ? <Tables node={of} />
            : tab === 'alarms' ? <NodeAlarms node={of} /> : <NodeMetrics node={of} />}
    <Forget node={of} />
  </>;
};
