// SPDX-License-Identifier: Apache-2.0
// What flows between the nodes, as it flows, or as it was recorded: groups and arcs; the schedulers of one node; its mailboxes. Frames
// come five times a second; they can be stopped, wound back and saved, and a recording needs no cluster.
import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import * as api from '../api.js';
import { Film, FRAME_MS, type Edge, type Frame } from '../film.js';
import { arcs, Crowd, drawFlow, drawMailboxes, drawQueues, far, heat, isCrowd, paper, placed, type Arcs } from '../flowing.js';
import { Force } from '../force.js';
import * as format from '../format.js';
import { tune } from '../go.js';
import { href, type Route } from '../route.js';
import { useLive, useLook } from './hooks.js';
import { Empty, Name, Trouble } from './parts.js';
import { Table, type Column } from './table.js';

type As = 'groups' | 'queues' | 'mailboxes';
const SHOWS: readonly [As, string][] = [['groups', 'Groups and arcs'], ['queues', 'Run queues'], ['mailboxes', 'Mailboxes']];
/** An arc is of the last second; mailboxes are of the last minute. */
const LAST = 5;
const MINUTE = 300;
const FADES = 5;
const TABLE_MS = 1000;
/** No text of a browser is much longer; `watch record` ends there. */
const MOST_BYTES = 500_000_000;
const BUSIEST = 50;
const MANY = 300;

interface Row { from: string; to: string; count: number; bytes: number }

const columns = (unit: string): Column<Row>[] => [
  { key: 'from', title: 'From', by: ({ from }) => from, cell: ({ from }) => <Name>{from}</Name> },
  { key: 'to', title: 'To', by: ({ to }) => to, cell: ({ to }) => <Name>{to}</Name> },
  { key: 'count', title: `${unit} in a second`, number: true, by: ({ count }) => count, cell: ({ count }) => format.count(Math.round(count)) },
  { key: 'bytes', title: 'Bytes in a second', number: true, by: ({ bytes }) => bytes, cell: ({ bytes }) => format.value(bytes, 'bytes') }
];

const saved = (film: Film): void => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([film.text()], { type: 'application/x-ndjson' }));
  link.download = 'traffic.flow';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

/** The frame of that time, or the one before it. */
const indexAt = (film: Film, t: number): number => {
  let [low, high] = [0, film.frames.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((film.frames[middle]?.t ?? 0) <= t) low = middle; else high = middle - 1;
  }
  return low;
};

/** What is drawn now, at which time of the film if not at its end, and how many pictures were drawn. */
interface Stage { film: Film; t: number | undefined; playing: boolean; force: Force; seen: number | undefined; dirty: boolean; drawn: number; crowd: Crowd; flow: Flow | undefined }

/** What flowed up to a frame: many pictures are of one. */
interface Flow { film: Film; frame: Frame; by: 'count' | 'bytes'; edges: Edge[]; seconds: number; arcs: Arcs }

const flowed = (stage: Stage, at: number, by: 'count' | 'bytes'): Flow | undefined => {
  const { film, flow } = stage;
  const frame = film.frames[at];
  if (frame === undefined || flow?.film === film && flow.frame === frame && flow.by === by) return frame && flow;
  const { edges, seconds } = film.flow(at, LAST);
  return stage.flow = { film, frame, by, edges, seconds, arcs: arcs(edges, by) };
};

export const TrafficView = ({ route }: { route: Route }) => {
  useLook();
  const as: As = SHOWS.find(([name]) => name === route.params.as)?.[0] ?? 'groups';
  const trace = route.params.trace === 'yes';
  const by = route.params.by === 'bytes' ? 'bytes' as const : 'count' as const;
  const all = useLive(state => state.nodes);
  const names = useMemo(() => [...all.keys()].sort(), [all]);
  const [file, setFile] = useState<{ name: string; film: Film }>();
  const [failure, setFailure] = useState<string>();
  const [, again] = useReducer<number, void>(n => n + 1, 0);
  const canvas = useRef<HTMLCanvasElement>(null);
  const stage = useRef<Stage>({ film: new Film(), t: undefined, playing: true, force: new Force(), seen: undefined, dirty: true, drawn: 0, crowd: new Crowd(), flow: undefined });
  // However often a stream begins anew, as it does for another node: the time line goes on.
  const live = useRef(stage.current.film);
  const node = route.params.node ?? '';

  const show = (film: Film, t: number | undefined): void => {
    Object.assign(stage.current, { film, t, playing: true, force: new Force(), seen: undefined, dirty: true });
    again();
  };

  // Live, unless a file is shown. The stream's end ends what was done for it on the nodes.
  useEffect(() => {
    if (file !== undefined) return undefined;
    const own = live.current;
    const stream = new EventSource(api.traffic({ trace: trace ? 'true' : undefined, load: as === 'groups' || node === '' ? undefined : node }));
    stream.addEventListener('frame', message => {
      own.add(JSON.parse((message as MessageEvent<string>).data));
      stage.current.dirty = true;
      setFailure(undefined);
    });
    stream.addEventListener('trouble', message => setFailure((JSON.parse((message as MessageEvent<string>).data) as { error: string }).error));
    stream.onerror = () => setFailure('The stream of frames has ended; it is tried again.');
    return () => stream.close();
  }, [file, trace, as === 'groups' ? '' : node]);

  // Pictures are drawn when the screen is, and only if they are others.
  useEffect(() => {
    let last = performance.now();
    let next = requestAnimationFrame(function draw(now: number): void {
      next = requestAnimationFrame(draw);
      const is = stage.current;
      const spent = now - last;
      last = now;
      const { film, force } = is;
      const ends = film.frames.at(-1)?.t ?? 0;
      if (is.t !== undefined && is.playing) {
        is.t = Math.min(ends, is.t + spent);
        is.dirty = true;
      }
      const at = is.t === undefined ? film.frames.length - 1 : indexAt(film, is.t);
      const frame = film.frames[at];
      const element = canvas.current;
      if (frame === undefined || element === null) return;
      force.set(film.names.length, frame.groups);
      // More of them find their places as fast.
      for (let steps = film.names.length > MANY ? 3 : 1; steps > 0 && !force.rests; steps -= 1) { force.step(); is.dirty = true; }
      if (!is.dirty) return;
      is.dirty = false;
      is.drawn += 1;
      element.dataset.drawn = String(is.drawn);
      const [width, height] = [element.clientWidth, element.clientHeight];
      if (as === 'groups') {
        const scene = { frame, names: film.names, arcs: flowed(is, at, by)?.arcs ?? [], force, seen: is.seen };
        const crowd = isCrowd(scene);
        const context = paper(element, width, height, crowd ? 1 : undefined);
        if (context === undefined) return;
        if (crowd) is.crowd.draw(context, scene); else drawFlow(context, width, height, scene);
        return;
      }
      const context = paper(element, width, height);
      if (context === undefined) return;
      const load = frame.loads.find(load => film.names[load.node] === node) ?? (file === undefined ? undefined : frame.loads[0]);
      if (load === undefined) return;
      if (as === 'mailboxes') drawMailboxes(context, width, height, film.frames.slice(Math.max(0, at - MINUTE + 1), at + 1), load.node);
      else {
        const before = film.frames.slice(Math.max(0, at - FADES), at).reverse().flatMap(({ loads }, age) =>
          (loads.find(its => its.node === load.node)?.migrations ?? []).map(([from, to, times]) => [from, to, times, age] as const));
        drawQueues(context, width, height, load, before);
      }
    });
    return () => cancelAnimationFrame(next);
  }, [as, by, node, file]);

  // Numbers beside the picture are read by people: once a second is enough.
  useEffect(() => {
    const each = setInterval(again, TABLE_MS);
    return () => clearInterval(each);
  }, []);
  useEffect(() => {
    stage.current.dirty = true;
    const sizes = new ResizeObserver(() => { stage.current.dirty = true; });
    if (canvas.current !== null) sizes.observe(canvas.current);
    return () => sizes.disconnect();
  });

  const { film, t, playing } = stage.current;
  const at = t === undefined ? film.frames.length - 1 : indexAt(film, t);
  const frame = film.frames[at];
  const [first, ends] = [film.frames[0]?.t ?? 0, film.frames.at(-1)?.t ?? 0];
  const { edges, seconds } = flowed(stage.current, at, by) ?? { edges: [], seconds: 1 };
  const name = (n: number): string => film.names[n] ?? '?';
  const rows: Row[] = [...edges].sort((a, b) => b[2] - a[2]).slice(0, BUSIEST).map(([from, to, count, bytes]: Edge) => ({ from: name(from), to: name(to), count: count / seconds, bytes: bytes / seconds }));
  const unit = frame?.counts === 'messages' ? 'Messages' : 'Packets';
  const loaded = film.frames.some(({ loads }) => loads.length > 0) ? [...new Set(film.frames.flatMap(({ loads }) => loads.map(load => name(load.node))))] : [];
  const wind = (to: number | undefined, plays: boolean): void => { Object.assign(stage.current, { t: to, playing: plays, dirty: true }); again(); };
  const load = frame?.loads.find(({ node: n }) => name(n) === node) ?? (file === undefined ? undefined : frame?.loads[0]);

  const open = async (event: Event): Promise<void> => {
    const chosen = (event.currentTarget as HTMLInputElement).files?.[0];
    if (chosen === undefined) return;
    try {
      if (chosen.size > MOST_BYTES) throw new Error(`${chosen.name} is too large for a page: ${format.value(chosen.size, 'bytes')}.`);
      const read = Film.of(await chosen.text());
      setFile({ name: chosen.name, film: read });
      setFailure(undefined);
      show(read, read.frames[0]?.t ?? 0);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    }
  };
  const point = (event: PointerEvent): void => {
    const element = canvas.current;
    if (element === null || as !== 'groups') return;
    const { left, top, width } = element.getBoundingClientRect();
    const here = { x: event.clientX - left, y: event.clientY - top };
    let [best, least] = [undefined as number | undefined, 18];
    stage.current.force.points.forEach((its, i) => {
      const { x, y } = placed(its, width, element.clientHeight);
      const off = Math.hypot(x - here.x, y - here.y);
      if (off < least) [best, least] = [i, off];
    });
    if (best !== stage.current.seen) { stage.current.seen = best; stage.current.dirty = true; again(); }
  };
  const seen = stage.current.seen;

  return <>
    <Trouble>{failure}</Trouble>
    <div class="controls">
      <nav class="tabs" aria-label="What is shown">{SHOWS.map(([key, title]) =>
        <a key={key} href={href('traffic', '', { ...route.params, as: key === 'groups' ? '' : key })} aria-current={key === as ? 'page' : undefined}>{title}</a>)}</nav>
      {as === 'groups'
        ? <label class="field"><span>Arcs by</span><select value={by} onChange={event => tune({ by: event.currentTarget.value === 'bytes' ? 'bytes' : '' })}><option value="count">how many</option><option value="bytes">bytes</option></select></label>
        : <label class="field"><span>Node</span><select value={node} onChange={event => tune({ node: event.currentTarget.value })}>
          <option value="">{file === undefined ? 'choose one' : loaded[0] ?? 'none was recorded'}</option>{(file === undefined ? names : loaded).map(each => <option key={each} value={each}>{each}</option>)}</select></label>}
      {file === undefined
        ? <label class="tick"><input type="checkbox" checked={trace} onChange={event => tune({ trace: event.currentTarget.checked ? 'yes' : '' })} /> Trace messages one by one</label>
        : <button type="button" onClick={() => { setFile(undefined); show(live.current, undefined); }}>Back to what is live</button>}
      <label class="field"><span>Open a recording</span><input type="file" accept=".flow,.ndjson,.jsonl" onChange={event => void open(event)} /></label>
      <button type="button" disabled={film.frames.length === 0} onClick={() => saved(film)}>Save</button>
    </div>
    <div class="timeline">
      <button type="button" disabled={film.frames.length === 0} onClick={() => wind(stage.current.t ?? ends, t !== undefined && !playing)}>{t !== undefined && !playing ? 'Play' : 'Stop'}</button>
      <input type="range" aria-label="Time" min={first} max={Math.max(first, ends)} step={FRAME_MS} value={t ?? ends} onInput={event => wind(Number(event.currentTarget.value), false)} />
      <span class="mono">{((t ?? ends) / 1000).toFixed(1)} s{film.at > 0 && `, ${new Date(film.at + (t ?? ends)).toLocaleTimeString('en-GB')}`}</span>
      {file === undefined && t !== undefined && <button type="button" onClick={() => wind(undefined, true)}>Now</button>}
      {file !== undefined && <span class="soft">from <Name>{file.name}</Name></span>}
    </div>
    <p class="flowing-said">{frame === undefined ? 'Waiting for the first frame…'
      : as === 'groups' ? <>{format.plural(film.names.length, 'node')}, {format.plural(frame.groups.length, 'group')}, {format.plural(edges.length, 'arc')} of the last second{frame.down.size > 0 && `, ${format.plural(frame.down.size, 'node')} down`}{frame.shares.size > 0 && `; on ${format.plural(frame.shares.size, 'node')} only a part of the time is traced`}{seen !== undefined && <>; <Name>{name(seen)}</Name>: {frame.groups.filter(({ nodes }) => nodes.includes(seen)).map(group => group.name).join(', ') || 'in no group'}</>}</>
        : load === undefined ? node !== '' && frame.down.has(film.names.indexOf(node)) ? <><Name>{node}</Name> is down.</>
          : 'Choose a node: its schedulers and mailboxes are looked at as long as somebody looks here.'
          : as === 'queues' ? <>{format.plural(load.queues.length, 'scheduler')}, {format.count(load.queues.reduce((sum, n) => sum + n, 0))} waiting to run, {format.plural(load.migrations.reduce((sum, [, , n]) => sum + n, 0), 'migration')} in this frame</>
            : load.mailboxes.map(([box, n]) => `${box} ${format.count(n)}`).join(', ') || 'All mailboxes of registered processes are empty.'}</p>
    <canvas ref={canvas} class="flowing" role="img" aria-label={as === 'groups' ? 'Nodes by group, with arcs by traffic; the table below has the same' : as === 'queues' ? 'Run queues of a node' : 'Lengths of mailboxes'} onPointerMove={point} />
    {as === 'groups' && <p class="legend soft">{['quiet', '', '', '', 'busy'].map((word, level) => <span key={level}><i class="line" style={{ background: heat(level / 5), height: `${1 + level}px` }} /> {word}</span>)}<span>each step is some times as much</span></p>}
    {as === 'queues' && <p class="legend soft">{([['thread', 'within a core'], ['core', 'within a chip'], ['chip', 'between chips']] as const).map(([key, word]) => <span key={key}><i class="line" style={{ background: far(key), height: '3px' }} /> {word}</span>)}</p>}
    {as === 'groups' && frame !== undefined && <><h3>Busiest in the last second</h3>{rows.length === 0 ? <Empty>Nothing was sent.</Empty> : <Table label="Busiest" rows={rows} columns={columns(unit)} keyOf={({ from, to }) => `${from} ${to}`} />}</>}
  </>;
};
