// SPDX-License-Identifier: Apache-2.0
// The processes of a node that have most of something, and one of them in full.
import * as api from '../api.js';
import type { Process, Processes as Answer } from '../api.js';
import * as format from '../format.js';
import { tune } from '../go.js';
import type { Params } from '../route.js';
import { useAsk } from './hooks.js';
import { Choice, Empty, Name, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';

const AGAIN_MS = 10_000;

const SORTS = [['memory', 'memory'], ['reductions', 'reductions'], ['queue', 'messages that wait']] as const;

const COLUMNS: Column<Process>[] = [
  { key: 'pid', title: 'Process', cell: ({ pid }) => <span class="mono">{pid}</span> },
  { key: 'name', title: 'Name or first call', by: ({ name, initial_call }) => name ?? initial_call, cell: ({ name, initial_call }) => <Name>{name ?? initial_call}</Name> },
  { key: 'memory', title: 'Memory', number: true, by: ({ memory }) => memory, cell: ({ memory }) => format.bytes(memory) },
  { key: 'reductions', title: 'Reductions', number: true, by: ({ reductions }) => reductions, cell: ({ reductions }) => format.count(reductions) },
  { key: 'queue', title: 'Messages', number: true, by: ({ message_queue }) => message_queue, cell: ({ message_queue }) => format.count(message_queue) },
  { key: 'status', title: 'Status', by: ({ status }) => status, cell: ({ status }) => status },
  { key: 'current', title: 'Is in', by: ({ current }) => current, cell: ({ current }) => <Name>{current}</Name> }
];

const Pids = ({ title, pids }: { title: string; pids: readonly string[] }) => pids.length === 0 ? null
  : <div><dt>{title}</dt><dd>{pids.map((pid, i) => <span key={i}>{i > 0 && ', '}<bdi class="mono">{pid}</bdi></span>)}</dd></div>;

const OneProcess = ({ node, pid }: { node: string; pid: string }) => {
  const { answer, failure, again } = useAsk(`process ${node} ${pid}`, api.process(node, pid));
  return <section class="one" aria-label={`Process ${pid}`}>
    <div class="one-head"><h3 class="mono"><bdi>{answer?.name ?? pid}</bdi></h3>
      <button type="button" onClick={() => again()}>Ask again</button><button type="button" onClick={() => tune({ pid: '' })}>Close</button></div>
    {answer === undefined ? <Waiting failure={failure} /> : <>
      <Trouble>{failure}</Trouble>
      <dl class="facts">
        <div><dt>Pid</dt><dd class="mono">{answer.pid}</dd></div>
        <div><dt>First call</dt><dd><Name>{answer.initial_call}</Name></dd></div>
        <div><dt>Memory</dt><dd>{format.bytes(answer.memory)}</dd></div>
        <div><dt>Heap</dt><dd>{format.count(answer.total_heap)} words</dd></div>
        <div><dt>Stack</dt><dd>{format.count(answer.stack)} words</dd></div>
        <div><dt>Messages</dt><dd>{format.count(answer.message_queue)}</dd></div>
        <div><dt>Reductions</dt><dd>{format.count(answer.reductions)}</dd></div>
        <div><dt>Status</dt><dd>{answer.status}</dd></div>
        <div><dt>Priority</dt><dd>{answer.priority}</dd></div>
        <div><dt>Traps exits</dt><dd>{answer.trap_exit ? 'yes' : 'no'}</dd></div>
      </dl>
      <h4>Where it stands</h4>
      {answer.stacktrace.length === 0 ? <Empty>It has no stack to show.</Empty>
        : <ol class="stack">{answer.stacktrace.map((frame, i) => <li key={i}><bdi class="mono">{frame.function}</bdi>
          {frame.file !== null && <span class="soft"> {frame.file}{frame.line !== null && `:${frame.line}`}</span>}</li>)}</ol>}
      <dl class="pids">
        <Pids title="Links" pids={answer.links} /><Pids title="Monitors" pids={answer.monitors} /><Pids title="Monitored by" pids={answer.monitored_by} />
      </dl>
      {answer.omitted > 0 && <p class="soft">{format.plural(answer.omitted, 'link or monitor', 'links and monitors')} more.</p>}
    </>}
  </section>;
};

export const Processes = ({ node, params }: { node: string; params: Params }) => {
  const sort: Answer['sort'] = SORTS.find(([key]) => key === params.sort)?.[0] ?? 'memory';
  const pid = params.pid ?? '';
  const { answer, failure } = useAsk(`processes ${node} ${sort}`, api.processes(node, sort), AGAIN_MS);
  return <>
    <div class="controls"><Choice label="With most" value={sort} values={SORTS} onChange={sort => tune({ sort })} />
      {answer !== undefined && <p class="soft">{answer.items.length} of {format.plural(answer.total, 'process', 'processes')}
        {answer.looked_at < answer.total && `, of which ${answer.looked_at.toLocaleString('en')} were looked at`}; asked again every 10 s</p>}</div>
    {pid !== '' && <OneProcess node={node} pid={pid} />}
    {answer === undefined ? <Waiting failure={failure} /> : <>
      <Trouble>{failure}</Trouble>
      <Table label={`Processes of ${node}`} rows={answer.items} columns={COLUMNS} keyOf={({ pid }) => pid} open={({ pid }) => tune({ pid })} chosen={pid} />
    </>}
  </>;
};
