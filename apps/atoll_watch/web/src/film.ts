// SPDX-License-Identifier: Apache-2.0
// What has flowed, frame by frame: as it comes from the watch, or from a recording, which has the
// same lines. A frame says what is new; a film knows at each of its frames what holds then. What
// is too old is let go, so that a page can stand open for days.

export type Edge = readonly [from: number, to: number, count: number, bytes: number];
export type Migration = readonly [from: number, to: number, times: number];
/** The load of one node: run queues, migrations of processes between schedulers, the longest mailboxes. */
export interface Load { node: number; queues: readonly number[]; migrations: readonly Migration[]; mailboxes: readonly (readonly [string, number])[]; places: readonly Place[] }
export type Place = readonly [chip: number, core: number, thread: number];
export interface Group { name: string; nodes: readonly number[] }
export interface Frame {
  /** Milliseconds since the first one. */
  t: number;
  edges: readonly Edge[];
  groups: readonly Group[];
  down: ReadonlySet<number>;
  counts: 'messages' | 'packets';
  /** Which part of the time was traced, by node, where that is not all. */
  shares: ReadonlyMap<number, number>;
  loads: readonly Load[];
}

interface Line {
  v?: number; t: number; at?: number; n?: string[]; g?: [string, number[]][]; d?: number[]; m?: 'messages' | 'packets';
  e?: [number, number, number, number][]; s?: [number, number][];
  l?: { n: number; q: number[]; x: [number, number, number][]; b: [string, number][]; c?: [number, number, number][] }[];
}

/** Twenty minutes of five a second. */
export const MOST_FRAMES = 6000;

/** What is no recording is told in a sentence. */
export class NoFilm extends Error {}

const isNumbers = (list: unknown, least: number): boolean => Array.isArray(list) && list.length >= least && list.every(n => typeof n === 'number' && Number.isFinite(n));
const isRows = (rows: unknown, least: number): boolean => rows === undefined || Array.isArray(rows) && rows.every(row => isNumbers(row, least));

const isLine = (line: unknown): line is Line => {
  if (typeof line !== 'object' || line === null) return false;
  const { t, n, g, d, e, s, l } = line as Line;
  return typeof t === 'number' && Number.isFinite(t) && (n === undefined || Array.isArray(n) && n.every(name => typeof name === 'string'))
    && (g === undefined || Array.isArray(g) && g.every(group => Array.isArray(group) && typeof group[0] === 'string' && isNumbers(group[1], 0)))
    && (d === undefined || isNumbers(d, 0)) && isRows(e, 4) && isRows(s, 2)
    && (l === undefined || Array.isArray(l) && l.every(load => typeof load?.n === 'number' && isNumbers(load.q, 0) && isRows(load.x, 3) && isRows(load.c, 3)
      && Array.isArray(load.b) && load.b.every(box => Array.isArray(box) && typeof box[0] === 'string' && typeof box[1] === 'number')));
};

export class Film {
  readonly names: string[] = [];
  frames: Frame[] = [];
  /** The time of day of the first frame there ever was. */
  at = 0;
  /** How many of the first were let go. */
  gone = 0;
  private readonly places = new Map<number, readonly Place[]>();
  /** Which of the names each number of the lines since the last beginning is, and when that was. */
  private numbers: number[] = [];
  private readonly known = new Map<string, number>();
  private begun = 0;

  constructor(private readonly most = MOST_FRAMES) {}

  add(line: unknown): void {
    if (!isLine(line)) throw new NoFilm('A line of it is no frame.');
    const before = this.frames.at(-1);
    if (line.v !== undefined && line.v !== 1) throw new NoFilm(`It is of version ${line.v}, and this page reads version 1.`);
    if (before === undefined) {
      if (line.v === undefined) throw new NoFilm('It does not begin as a recording does.');
      this.at = line.at ?? 0;
    } else if (line.v !== undefined) {
      // Another stream goes on with it: its numbers and its time are its own.
      this.numbers = [];
      this.begun = Math.max(before.t + FRAME_MS, (line.at ?? 0) - this.at);
    }
    const t = this.begun + line.t;
    if (before !== undefined && t < before.t) throw new NoFilm('Its time goes backwards.');
    for (const name of line.n ?? []) {
      const known = this.known.get(name) ?? this.names.push(name) - 1;
      this.known.set(name, known);
      this.numbers.push(known);
    }
    const number = (n: number): number => this.numbers[n] ?? -1;
    for (const { n, c } of line.l ?? []) if (c !== undefined) this.places.set(number(n), c);
    this.frames.push({
      t,
      edges: (line.e ?? []).map(([from, to, count, bytes]) => [number(from), number(to), count, bytes] as const),
      groups: line.g?.map(([name, nodes]) => ({ name, nodes: nodes.map(number) })) ?? before?.groups ?? [],
      down: line.d === undefined ? before?.down ?? new Set() : new Set(line.d.map(number)),
      counts: line.m ?? before?.counts ?? 'packets',
      shares: new Map((line.s ?? []).map(([n, share]) => [number(n), share])),
      loads: (line.l ?? []).map(({ n, q, x, b }) => ({ node: number(n), queues: q, migrations: x, mailboxes: b, places: this.places.get(number(n)) ?? q.map((_, i) => [0, i, 0] as const) }))
    });
    if (this.frames.length > this.most) {
      this.frames.shift();
      this.gone += 1;
    }
  }

  /** Of a text with a frame on each line. */
  static of(text: string): Film {
    const film = new Film(Infinity);
    text.split('\n').forEach((line, i) => {
      if (line.trim() === '') return;
      try {
        film.add(JSON.parse(line));
      } catch (error) {
        throw new NoFilm(`This is no recording of traffic, line ${i + 1}: ${error instanceof NoFilm ? error.message : 'it is no JSON.'}`);
      }
    });
    if (film.frames.length === 0) throw new NoFilm('There is no frame in it.');
    return film;
  }

  /** As a recording, of the frames that are still there. */
  text(): string {
    const shown = new Set<number>();
    const first = this.frames[0]?.t ?? 0;
    return this.frames.map((frame, i) => {
      const before = this.frames[i - 1];
      const line: Line = { ...i === 0 ? { v: 1, at: this.at + first, n: this.names } : {}, t: frame.t - first };
      if (frame.groups !== before?.groups) line.g = frame.groups.map(({ name, nodes }) => [name, [...nodes]]);
      if (frame.down !== before?.down) line.d = [...frame.down];
      if (frame.counts !== before?.counts) line.m = frame.counts;
      if (frame.edges.length > 0) line.e = frame.edges.map(edge => [...edge] as [number, number, number, number]);
      if (frame.shares.size > 0) line.s = [...frame.shares];
      if (frame.loads.length > 0) line.l = frame.loads.map(({ node, queues, migrations, mailboxes, places }) => ({
        n: node, q: [...queues], x: migrations.map(m => [...m] as [number, number, number]), b: mailboxes.map(b => [...b] as [string, number]),
        ...shown.has(node) ? {} : (shown.add(node), { c: places.map(p => [...p] as [number, number, number]) })
      }));
      return JSON.stringify(line);
    }).join('\n') + '\n';
  }

  /** What went from node to node within the `last` frames up to that one, by `from * names + to`, and how long these took, in seconds. */
  flow(at: number, last: number): { edges: Edge[]; seconds: number } {
    const of = new Map<number, [number, number, number, number]>();
    const first = Math.max(0, at - last + 1);
    for (const { edges } of this.frames.slice(first, at + 1)) {
      for (const [from, to, count, bytes] of edges) {
        const key = from * this.names.length + to;
        const edge = of.get(key);
        if (edge === undefined) of.set(key, [from, to, count, bytes]);
        else { edge[2] += count; edge[3] += bytes; }
      }
    }
    const here = this.frames[at]?.t ?? 0;
    const before = this.frames[first - 1]?.t ?? (this.frames[first]?.t ?? 0) - FRAME_MS;
    return { edges: [...of.values()], seconds: Math.max(FRAME_MS, here - before) / 1000 };
  }
}

export const FRAME_MS = 200;

/** The length of each mailbox of a node, frame by frame: 0 where it is not among the longest, none where the node was not looked at. */
export const mailboxes = (frames: readonly Frame[], node: number): { name: string; lengths: (number | undefined)[]; most: number }[] => {
  const looks = frames.map(({ loads }) => loads.find(load => load.node === node)?.mailboxes);
  const names = new Set(looks.flatMap(boxes => (boxes ?? []).map(([name]) => name)));
  return [...names].map(name => {
    const lengths = looks.map(boxes => boxes && (boxes.find(([its]) => its === name)?.[1] ?? 0));
    return { name, lengths, most: lengths.reduce<number>((most, length) => Math.max(most, length ?? 0), 0) };
  });
};

export type Distance = 'thread' | 'core' | 'chip';

/** What a migration between two schedulers crosses: between threads of a core, cores of a chip, or chips. */
export const distance = (a: Place | undefined, b: Place | undefined): Distance =>
  a === undefined || b === undefined || a[0] !== b[0] ? 'chip' : a[1] !== b[1] ? 'core' : 'thread';

/** How busy each edge is, from 0 to 1: by its order of magnitude, over three of them, so that a busy one does not hide all others. */
export const busy = (edges: readonly Edge[], by: 'count' | 'bytes'): number[] => {
  const at = by === 'count' ? 2 : 3;
  const most = edges.reduce((most, edge) => Math.max(most, edge[at]), 1);
  return edges.map(edge => edge[at] <= 0 ? 0 : Math.max(0, 1 + Math.log10(edge[at] / most) / 3));
};
