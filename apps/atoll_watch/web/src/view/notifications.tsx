// SPDX-License-Identifier: Apache-2.0
// What the watch has seen, the last first; what happens now comes in front.
import { useMemo, useState } from 'preact/hooks';
import * as api from '../api.js';
import type { Notification } from '../api.js';
import * as format from '../format.js';
import { tune } from '../go.js';
import { live } from '../live.js';
import { KINDS, LEVELS, wants } from '../notifications.js';
import type { Route } from '../route.js';
import { useLive, useSettled } from './hooks.js';
import { usePages } from './pages.js';
import { Choice, Empty, LevelMark, Long, Name, NodeLink, Search, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';

const COLUMNS: Column<Notification>[] = [
  { key: 'time', title: 'Time', cell: ({ time_ms }) => format.time(time_ms, live.now()) },
  { key: 'severity', title: 'Severity', cell: ({ severity }) => <LevelMark level={severity} /> },
  { key: 'text', title: 'What', cell: ({ text }) => <Long>{text}</Long> },
  { key: 'node', title: 'Node', cell: ({ node }) => node === null ? '' : <NodeLink node={node} row /> },
  { key: 'kind', title: 'Kind', cell: ({ kind }) => <Name>{kind}</Name> }
];

export const NotificationsView = ({ route: { params } }: { route: Route }) => {
  const { q = '', severity = '', kind = '', node = '' } = params;
  const search = useSettled(q);
  const late = useLive(state => state.notifications);
  const fresh = useMemo(() => late.filter(wants({ search, severity, kind, node })), [late, search, severity, kind, node]);
  const [open, setOpen] = useState<Notification>();
  const { items, total, failure, more, busy } = usePages(JSON.stringify([search, severity, kind, node]),
    cursor => api.notifications({ search, severity, kind, node, cursor }), fresh);
  const any = (values: readonly string[]): [string, string][] => [['', 'any'], ...values.map((each): [string, string] => [each, each])];
  return <>
    <div class="controls">
      <Search label="Search text and node" value={q} onInput={q => tune({ q })} />
      <Choice label="Severity" value={severity} values={[['', 'any'], ...LEVELS.map((each, i): [string, string] => [each, i === 0 ? each : `${each} or worse`])]} onChange={severity => tune({ severity })} />
      <Choice label="Kind" value={kind} values={any([...new Set([...KINDS, kind, ...(items ?? []).map(is => is.kind)])].filter(each => each !== ''))} onChange={kind => tune({ kind })} />
      {node !== '' && <button type="button" onClick={() => tune({ node: '' })}>of <Name>{node}</Name> ×</button>}
    </div>
    <Trouble>{failure}</Trouble>
    {open !== undefined && <section class="one" aria-label="One notification">
      <div class="one-head"><h3><LevelMark level={open.severity} /> {open.kind}, {format.time(open.time_ms, live.now())}</h3><button type="button" onClick={() => setOpen(undefined)}>Close</button></div>
      {open.node !== null && <p>of <NodeLink node={open.node} /></p>}
      <p class="whole"><bdi>{open.text}</bdi></p>
    </section>}
    {items === undefined ? failure === undefined && <Waiting failure={undefined} />
      : items.length === 0 ? <Empty>Nothing of this kind has happened.</Empty>
        : <Table label="Notifications" rows={items} columns={COLUMNS} keyOf={({ id }) => id} open={setOpen} chosen={open?.id} />}
    {items !== undefined && more !== undefined && <p class="older soft"><button type="button" disabled={busy} onClick={more}>Older ones</button> {items.length.toLocaleString('en')} of {Math.max(total, items.length).toLocaleString('en')}</p>}
  </>;
};
