// SPDX-License-Identifier: Apache-2.0
// The alarms that stand and those that were; one of them in full, to acknowledge and to
// comment on.
import { useMemo, useState } from 'preact/hooks';
import * as api from '../api.js';
import type { Alarm, Rule } from '../api.js';
import * as format from '../format.js';
import { go, tune } from '../go.js';
import { live } from '../live.js';
import { href, type Route } from '../route.js';
import { finder } from '../sort.js';
import { byUrgency, SEVERITIES } from '../state.js';
import { useAsk, useDeed, useLive } from './hooks.js';
import { Choice, Empty, LevelMark, Long, Name, Nodes, Search, Tabs, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';
import { usePages } from './pages.js';

/** What it is about: the rule, and of which of several. */
const subject = ({ rule, instance }: Alarm): string => instance === null ? rule : `${rule} of ${instance}`;

/** An alarm about what is wrong between nodes names all of them. */
const nodesOf = ({ node, nodes }: Alarm): readonly string[] => nodes ?? [node];

const when = (ms: number): string => format.time(ms, live.now());

const COLUMNS: Column<Alarm>[] = [
  { key: 'severity', title: 'Severity', by: ({ severity }) => SEVERITIES.indexOf(severity), cell: ({ severity }) => <LevelMark level={severity} /> },
  { key: 'rule', title: 'Alarm', by: subject, cell: alarm => <Name>{subject(alarm)}</Name> },
  { key: 'node', title: 'Node', by: ({ node }) => node, cell: alarm => <Nodes nodes={nodesOf(alarm)} most={1} /> },
  { key: 'raised', title: 'Raised', number: true, by: ({ raised_ms }) => raised_ms, cell: ({ raised_ms }) => when(raised_ms) },
  { key: 'state', title: 'State', by: ({ state }) => state, cell: ({ state, cleared_ms, acknowledged }) =>
    state === 'cleared' && cleared_ms !== null ? `cleared ${when(cleared_ms)}` : acknowledged !== null ? <Name>{`acknowledged by ${acknowledged.who}`}</Name> : 'new' },
  { key: 'comments', title: 'Comments', number: true, by: ({ comments }) => comments.length, cell: ({ comments }) => comments.length === 0 ? '' : format.count(comments.length) },
  { key: 'cause', title: 'Probable cause', cell: ({ cause }) => <Long>{cause}</Long> }
];

export const AlarmTable = ({ alarms, open, chosen }: { alarms: readonly Alarm[]; open: (alarm: Alarm) => void; chosen?: number | undefined }) =>
  <Table label="Alarms" rows={alarms} columns={COLUMNS} keyOf={({ id }) => id} open={open} chosen={chosen} />;

const WHO = 'atoll-who';
const whoKept = (): string => { try { return localStorage.getItem(WHO) ?? ''; } catch { return ''; } };
const keepWho = (who: string): void => { try { localStorage.setItem(WHO, who); } catch { /* until the page is closed */ } };

const Actions = ({ alarm, done }: { alarm: Alarm; done: (alarm: Alarm) => void }) => {
  const [who, setWho] = useState(whoKept);
  const [text, setText] = useState('');
  const { busy, failure, does } = useDeed();
  const deed = (act: () => Promise<Alarm>): Promise<boolean> => {
    keepWho(who.trim());
    return does(async () => done(await act()));
  };
  const comment = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await deed(() => api.comment(alarm.id, who.trim(), text.trim()))) setText('');
  };
  const named = who.trim() !== '';
  return <form class="actions" onSubmit={event => void comment(event)}>
    <label class="field"><span>Your name</span><input type="text" value={who} maxLength={100} autocomplete="name" onInput={event => setWho(event.currentTarget.value)} /></label>
    {alarm.state === 'new' && <button type="button" disabled={busy || !named} onClick={() => void deed(() => api.acknowledge(alarm.id, who.trim()))}>Acknowledge</button>}
    <label class="field wide"><span>Comment</span><textarea rows={2} maxLength={1000} value={text} onInput={event => setText(event.currentTarget.value)} /></label>
    <button type="submit" disabled={busy || !named || text.trim() === ''}>Comment</button>
    {!named && <p class="soft">Your name stands beside what you say.</p>}
    <Trouble>{failure}</Trouble>
  </form>;
};

/** What may be told of an alarm, as it is now: from the stream if it is there, else asked for. */
const OneAlarm = ({ id, close }: { id: number; close: string }) => {
  const standing = useLive(state => state.alarms.get(id) ?? state.cleared.find(alarm => alarm.id === id));
  const [mine, setMine] = useState<Alarm>();
  const asked = useAsk(`alarm ${id}`, api.alarm(id));
  const alarm = standing ?? mine ?? asked.answer;
  if (alarm === undefined) return <Waiting failure={asked.failure} />;
  return <section class={`one worst-${alarm.severity}`} aria-label={`Alarm ${id}`}>
    <div class="one-head"><h3><LevelMark level={alarm.severity} /> <bdi>{subject(alarm)}</bdi></h3><a href={close}>Close</a></div>
    <p>of <Nodes nodes={nodesOf(alarm)} row={false} />, raised {when(alarm.raised_ms)}
      {alarm.acknowledged !== null && <>, acknowledged {when(alarm.acknowledged.time_ms)} by <bdi>{alarm.acknowledged.who}</bdi></>}
      {alarm.cleared_ms !== null && `, cleared ${when(alarm.cleared_ms)}`}</p>
    <dl class="said">
      {typeof alarm.information === 'string' && <><dt>Found</dt><dd><bdi>{alarm.information}</bdi></dd></>}
      <dt>Probable cause</dt><dd>{alarm.cause}</dd>
      <dt>What may help</dt><dd>{alarm.repair}</dd>
      {alarm.value !== null && <><dt>Value</dt><dd>{format.count(Math.round(alarm.value * 1000) / 1000)}</dd></>}
    </dl>
    <h4>Comments</h4>
    {alarm.comments.length === 0 ? <p class="soft">None.</p>
      : <ol class="comments">{alarm.comments.map(({ time_ms, who, text }, i) => <li key={i}><p class="soft"><bdi>{who}</bdi>, {when(time_ms)}</p><p><bdi>{text}</bdi></p></li>)}</ol>}
    <Actions alarm={alarm} done={setMine} />
  </section>;
};

const limit = (n: number | null): string => n === null ? format.NOTHING : n.toLocaleString('en');

const RULES: Column<Rule>[] = [
  { key: 'rule', title: 'Alarm', by: ({ rule }) => rule, cell: ({ rule }) => <Name>{rule}</Name> },
  { key: 'severity', title: 'Severity', by: ({ severity }) => SEVERITIES.indexOf(severity), cell: ({ severity }) => <LevelMark level={severity} /> },
  { key: 'about', title: 'Looks at', by: ({ about }) => about, cell: ({ about }) => <Name>{about}</Name> },
  { key: 'raise', title: 'Raised from', number: true, cell: ({ raise }) => limit(raise) },
  { key: 'clear', title: 'Cleared below', number: true, cell: ({ clear }) => limit(clear) },
  { key: 'looks', title: 'Looks in a row', number: true, by: ({ looks }) => looks, cell: ({ looks }) => limit(looks) },
  { key: 'cause', title: 'Probable cause', cell: ({ cause }) => <Long>{cause}</Long> },
  { key: 'repair', title: 'What may help', cell: ({ repair }) => <Long>{repair}</Long> }
];

const Rules = () => {
  const { answer, failure } = useAsk('rules', api.rules);
  return answer === undefined ? <Waiting failure={failure} /> : <Table label="Rules" rows={answer} columns={RULES} keyOf={({ rule }) => rule} />;
};

const History = ({ severity, node, id, open }: { severity: string; node: string; id: number; open: (alarm: Alarm) => void }) => {
  const late = useLive(state => state.cleared);
  const fresh = late.filter(alarm => (severity === '' || alarm.severity === severity) && (node === '' || alarm.node === node));
  const { items, total, failure, more, busy } = usePages(`cleared ${severity} ${node}`, cursor => api.cleared({ severity, node, cursor }), fresh);
  if (items === undefined) return <Waiting failure={failure} />;
  return <>
    <Trouble>{failure}</Trouble>
    {items.length === 0 ? <Empty>None was cleared.</Empty> : <AlarmTable alarms={items} open={open} chosen={id} />}
    {more !== undefined && <p class="older soft"><button type="button" disabled={busy} onClick={more}>Older ones</button> {items.length.toLocaleString('en')} of {total.toLocaleString('en')}</p>}
  </>;
};

export const AlarmsView = ({ route: { of, params } }: { route: Route }) => {
  const all = useLive(state => state.alarms);
  const known = useLive(state => state.cluster !== undefined);
  const { show = '', q = '', severity = '', node = '' } = params;
  const id = /^\d+$/.test(of) ? Number(of) : 0;
  const standing = useMemo(() => {
    const found = finder(q);
    return [...all.values()].filter(alarm => (severity === '' || alarm.severity === severity) && found(`${nodesOf(alarm).join(' ')} ${subject(alarm)} ${alarm.information ?? ''} ${alarm.cause}`)).sort(byUrgency);
  }, [all, q, severity]);
  const open = (alarm: Alarm): void => go('alarms', String(alarm.id), params);
  return <>
    <div class="controls">
      <Tabs label="Which" now={show} tabs={[{ key: '', title: 'Standing', to: href('alarms', '', { ...params, show: '' }) }, { key: 'history', title: 'History', to: href('alarms', '', { ...params, show: 'history' }) }, { key: 'rules', title: 'Rules', to: href('alarms', '', { show: 'rules' }) }]} />
      {show === 'rules' ? <p class="soft">When which alarm is raised.</p> : show === '' ? <Search label="Search" value={q} onInput={q => tune({ q })} />
        : <Search label="Of the node" value={node} onInput={node => tune({ node })} />}
      {show !== 'rules' && <Choice label="Severity" value={severity} values={[['', 'any'], ...SEVERITIES.map(each => [each, each] as const)]} onChange={severity => tune({ severity })} />}
    </div>
    {id > 0 && <OneAlarm key={id} id={id} close={href('alarms', '', params)} />}
    {show === 'rules' ? <Rules /> : show === 'history' ? <History severity={severity} node={node} id={id} open={open} />
      : !known ? <Waiting failure={undefined} />
        : standing.length === 0 ? <Empty>{all.size === 0 ? 'No alarm stands.' : 'No alarm is so.'}</Empty>
          : <AlarmTable alarms={standing} open={open} chosen={id} />}
  </>;
};
