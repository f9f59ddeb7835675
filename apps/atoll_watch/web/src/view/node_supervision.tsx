// SPDX-License-Identifier: Apache-2.0
// The supervision tree of a node, from its applications or from one supervisor on.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import * as api from '../api.js';
import type { Supervised } from '../api.js';
import * as format from '../format.js';
import { href } from '../route.js';
import { opened, rowsOf, step, type Row } from '../tree.js';
import { useAsk } from './hooks.js';
import { Empty, Trouble, Waiting } from './parts.js';

const INDENT_PX = 20;

const about = ({ type, count, module, omitted }: Supervised): string => [
  type,
  type === 'supervisor' && (count === null ? 'does not say its children' : format.plural(count, 'child', 'children')),
  module,
  omitted > 0 && `${omitted.toLocaleString('en')} not shown`
].filter(part => typeof part === 'string').join(' · ');

const Entry = ({ row: { path, depth, place, of, entry }, node, open, active, turn }: { row: Row; node: string; open: boolean | undefined; active: boolean; turn: () => void }) =>
  <li role="treeitem" data-path={path} aria-level={depth} aria-posinset={place} aria-setsize={of} aria-expanded={open} tabIndex={active ? 0 : -1}
    style={{ paddingInlineStart: `${(depth - 1) * INDENT_PX}px` }} onClick={event => { if (!(event.target as Element).closest('a')) turn(); }}>
    <span class="twig" aria-hidden="true">{open === undefined ? '·' : open ? '▾' : '▸'}</span>
    <bdi class={`tree-name is-${entry.type}`}>{entry.type === 'application' ? entry.id : entry.name ?? entry.id}</bdi>
    <span class="soft"> {about(entry)}</span>
    {entry.pid !== null && <> <a tabIndex={-1} class="mono" href={href('node', node, { tab: 'processes', pid: entry.pid })}>{entry.pid}</a></>}
    {entry.type === 'supervisor' && entry.pid !== null && entry.omitted > 0 && <> <a tabIndex={-1} href={href('node', node, { tab: 'supervision', root: entry.pid })}>from here on</a></>}
  </li>;

export const Supervision = ({ node, root }: { node: string; root: string }) => {
  const { answer, failure, again } = useAsk(`supervision ${node} ${root}`, api.supervision(node, root));
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState('0');
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => { setOpen(new Set(opened(answer?.items ?? [], 2))); setActive('0'); }, [answer]);
  const rows = useMemo(() => rowsOf(answer?.items ?? [], open), [answer, open]);
  if (answer === undefined) return <Waiting failure={failure} />;

  const turn = (path: string, to = !open.has(path)): void => {
    const now = new Set(open);
    if (to) now.add(path); else now.delete(path);
    setOpen(now);
    setActive(path);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const item = (event.target as Element).closest<HTMLElement>('[data-path]');
    const at = item?.dataset.path;
    if (item === null || at === undefined) return;
    if (event.key === 'Enter') { item.querySelector('a')?.click(); return; }
    const does = step(rows, at, event.key, open);
    if (does === undefined) return;
    event.preventDefault();
    if ('focus' in does) {
      setActive(does.focus);
      list.current?.querySelector<HTMLElement>(`[data-path="${does.focus}"]`)?.focus();
    } else if ('open' in does) turn(does.open, true);
    else turn(does.close, false);
  };
  return <>
    <div class="controls">
      {root !== '' && <p>From <bdi class="mono">{root}</bdi> on. <a href={href('node', node, { tab: 'supervision' })}>From the applications on</a></p>}
      <button type="button" onClick={() => again()}>Ask again</button>
      {answer.omitted > 0 && <p class="soft">{format.plural(answer.omitted, 'entry', 'entries')} not shown: the tree is too large for one answer.</p>}
    </div>
    <Trouble>{failure}</Trouble>
    {rows.length === 0 ? <Empty>It has no application with a supervisor.</Empty>
      : <ul role="tree" class="tree scroll" aria-label={`Supervision tree of ${node}`} ref={list} onKeyDown={onKeyDown}>
        {rows.map(row => <Entry key={row.path} row={row} node={node} active={row.path === active}
          open={row.entry.children.length === 0 ? undefined : open.has(row.path)} turn={() => turn(row.path)} />)}
      </ul>}
  </>;
};
