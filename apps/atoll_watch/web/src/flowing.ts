// SPDX-License-Identifier: Apache-2.0
// Draws what flows, on canvases. High level: groups as regions that overlap, nodes, and arcs between them from quiet to busy. Low
// level: the run queues of one node about a circle, by chip, core and thread, with migrations as arcs across it.
// Where a colour says something, a width or a height says it too.
import { busy, distance, mailboxes, type Distance, type Edge, type Frame, type Load } from './film.js';
import { hull, type Force, type Point } from './force.js';
import { shortened, spread, type Box } from './labels.js';
import { curve, ink, look } from './look.js';
import { disc, line, packed, stamp, type Disc } from './pixels.js';

/** From quiet to busy. */
const HEAT: Record<'light' | 'dark', readonly string[]> = {
  light: ['#1b6e3c', '#5c7a1f', '#8a7a00', '#b36200', '#b3261e'],
  dark: ['#6fd19a', '#a8cf6a', '#e8c34a', '#ffab6b', '#ff6f61']
};
const FAR: Record<'light' | 'dark', Record<Distance, string>> = {
  light: { thread: '#1b6e3c', core: '#6b7683', chip: '#0b62c4' },
  dark: { thread: '#6fd19a', core: '#a3afbd', chip: '#62aeff' }
};
const level = (share: number): number => Math.min(4, Math.floor(share * 5));
export const heat = (share: number): string => HEAT[look()][level(share)] ?? '';
export const far = (of: Distance): string => FAR[look()][of];

/** A canvas of that many pixels of the page, sharp on every screen unless that is too much. */
export const paper = (canvas: HTMLCanvasElement, width: number, height: number, scale = devicePixelRatio || 1): CanvasRenderingContext2D | undefined => {
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  // What is written pixel by pixel is in the memory of the processor.
  const context = canvas.getContext('2d', { willReadFrequently: true }) ?? undefined;
  context?.setTransform(scale, 0, 0, scale, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
};

/** Arcs by how busy they are, from quiet to busy. */
export type Arcs = readonly (readonly Edge[])[];

export const arcs = (edges: readonly Edge[], by: 'count' | 'bytes'): Arcs => {
  const levels: Edge[][] = HEAT.light.map(() => []);
  busy(edges, by).forEach((share, i) => levels[level(share)]?.push(edges[i] as Edge));
  return levels;
};

export interface Scene { frame: Frame; names: readonly string[]; arcs: Arcs; force: Force; seen: number | undefined }

const FONT = '13px system-ui, sans-serif';
const MOST_NAMED = 60;
const MOST_NAMED_GROUPS = 40;
const MOST_LETTERS = 24;
/** The height of a name, and its base line within that. */
const LINE = 16;
const BASE = 12;
const PAD = 28;

/** So many are written pixel by pixel. */
export const isCrowd = ({ names, arcs }: Scene): boolean => names.length > 300 || arcs.reduce((sum, { length }) => sum + length, 0) > 500;

/** A canvas that nobody sees, in the memory of the processor. */
const sheet = (): CanvasRenderingContext2D => document.createElement('canvas').getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D;

export const placed = ({ x, y }: Point, width: number, height: number): Point => ({ x: PAD + x * (width - 2 * PAD), y: PAD + y * (height - 2 * PAD) });

const allPlaced = ({ force }: Scene, width: number, height: number): Point[] => force.points.map(point => placed(point, width, height));
const radius = ({ force }: Scene, width: number, height: number): number => Math.max(2.5, Math.min(9, 0.22 * force.room * Math.min(width, height)));
const groupsOf = ({ frame, force }: Scene): number[][] => {
  const of: number[][] = force.points.map(() => []);
  frame.groups.forEach(({ nodes }, g) => nodes.forEach(node => of[node]?.push(g)));
  return of;
};
const isShown = ([from, to]: Edge, { seen }: Scene): boolean => seen === undefined || from === seen || to === seen;

/** A region about some points: so much wider than they are, and of one shade throughout. */
const region = (context: CanvasRenderingContext2D, points: readonly Point[], by: number): void => {
  const x = points.reduce((sum, point) => sum + point.x, 0) / points.length;
  const y = points.reduce((sum, point) => sum + point.y, 0) / points.length;
  context.beginPath();
  if (points.length < 3) {
    context.lineCap = 'round';
    context.lineWidth = 2 * by;
    points.forEach(point => context.lineTo(point.x, point.y));
    context.lineTo(x + 0.1, y);
    context.stroke();
    return;
  }
  for (const point of points) {
    const far = Math.hypot(point.x - x, point.y - y) || 1;
    context.lineTo(point.x + by * (point.x - x) / far, point.y + by * (point.y - y) / far);
  }
  context.closePath();
  context.fill();
};

/** What is in two groups lies where both are. */
const drawRegions = (context: CanvasRenderingContext2D, points: readonly Point[], size: number, { frame }: Scene): void => {
  context.globalAlpha = 0.13;
  frame.groups.forEach(({ nodes }, g) => {
    context.fillStyle = context.strokeStyle = curve(g).color;
    const layer = hull(nodes.flatMap(node => points[node] ?? []));
    if (layer.length > 0) region(context, layer, size * 1.6 + 10);
  });
  context.globalAlpha = 1;
};

/** Bent to one side, so that both ways show. Those of one colour and width are one path. */
const drawArcs = (context: CanvasRenderingContext2D, points: readonly Point[], scene: Scene): void => {
  context.globalAlpha = 0.8;
  scene.arcs.forEach((edges, level) => {
    context.strokeStyle = HEAT[look()][level] ?? '';
    context.lineWidth = 0.6 + level * 0.7;
    context.beginPath();
    for (const edge of edges) {
      const [a, b] = [points[edge[0]], points[edge[1]]];
      if (a === undefined || b === undefined || !isShown(edge, scene)) continue;
      context.moveTo(a.x, a.y);
      context.quadraticCurveTo((a.x + b.x) / 2 + 0.12 * (b.y - a.y), (a.y + b.y) / 2 - 0.12 * (b.x - a.x), b.x, b.y);
    }
    context.stroke();
  });
  context.globalAlpha = 1;
};

const drawNode = (context: CanvasRenderingContext2D, { x, y }: Point, size: number, groups: readonly number[], how: 'up' | 'down' | 'seen'): void => {
  const parts = Math.max(1, groups.length);
  for (let part = 0; part < parts; part += 1) {
    const group = groups[part];
    context.beginPath();
    context.moveTo(x, y);
    context.arc(x, y, size, 2 * Math.PI * part / parts - Math.PI / 2, 2 * Math.PI * (part + 1) / parts - Math.PI / 2);
    context.fillStyle = how === 'down' ? ink('--paper') : group === undefined ? ink('--soft') : curve(group).color;
    context.fill();
  }
  context.beginPath();
  context.arc(x, y, size, 0, 2 * Math.PI);
  context.strokeStyle = ink(how === 'down' ? '--critical' : how === 'seen' ? '--ink' : '--paper');
  context.lineWidth = how === 'up' ? 1 : 2;
  context.stroke();
};

/** A name, and where it may stand. */
interface Written { text: string; font: string; colour: string; boxes: Box[] }

const written = (context: CanvasRenderingContext2D, text: string, font: string, colour: string, places: (width: number) => readonly { x: number; y: number }[]): Written => {
  context.font = font;
  const width = context.measureText(text).width;
  return { text, font, colour, boxes: places(width).map(({ x, y }) => ({ x, y, width, height: LINE })) };
};

const write = (context: CanvasRenderingContext2D, names: readonly Written[], seen: readonly Box[], width: number, height: number): void => {
  context.lineWidth = 4;
  context.lineJoin = 'round';
  context.strokeStyle = ink('--paper');
  context.textAlign = 'left';
  spread(names.map(({ boxes }) => boxes), seen, width, height).forEach((box, i) => {
    const name = names[i];
    if (box === undefined || name === undefined) return;
    context.font = name.font;
    context.fillStyle = name.colour;
    context.strokeText(name.text, box.x, box.y + BASE);
    context.fillText(name.text, box.x, box.y + BASE);
  });
};

/** Above a group, below it, or at one of its sides: as near as the picture's rim lets it. */
const groupNames = (context: CanvasRenderingContext2D, points: readonly Point[], size: number, width: number, height: number, { frame }: Scene): Written[] => {
  if (frame.groups.length > MOST_NAMED_GROUPS) return [];
  const off = size * 1.6 + 10;
  return frame.groups.flatMap(({ name, nodes }, g) => {
    const its = nodes.flatMap(node => points[node] ?? []);
    if (its.length === 0) return [];
    const [xs, ys] = [its.map(({ x }) => x), its.map(({ y }) => y)];
    const [left, right, above, below] = [Math.min(...xs), Math.max(...xs), Math.min(...ys) - off - LINE, Math.max(...ys) + off];
    const middle = xs.reduce((sum, x) => sum + x, 0) / xs.length;
    return [written(context, shortened(name, MOST_LETTERS), `600 ${FONT}`, curve(g).color, long => [
      ...[middle - long / 2, left - off, right + off - long].flatMap(x => [{ x, y: above }, { x, y: below }]), { x: left - off, y: (above + below) / 2 }, { x: right + off - long, y: (above + below) / 2 }
    ].map(({ x, y }) => ({ x: Math.max(2, Math.min(width - 2 - long, x)), y: Math.max(2, Math.min(height - 2 - LINE, y)) })))];
  });
};

/** Beside a node, below or above it. The node that is pointed at has its name before all others. */
const nodeNames = (context: CanvasRenderingContext2D, points: readonly Point[], size: number, width: number, { names, seen }: Scene): Written[] => {
  if (points.length > MOST_NAMED) return [];
  // On a phone there is less room.
  const letters = Math.min(MOST_LETTERS, Math.round(width / 32));
  const order = [...seen === undefined ? [] : [seen], ...points.keys()];
  return [...new Set(order)].flatMap(node => {
    const point = points[node];
    if (point === undefined) return [];
    const { x, y } = point;
    const off = size + 4;
    return [written(context, shortened(names[node]?.replace(/@[^@]*$/, '') ?? '', letters), FONT, ink('--ink'), long => [
      [off, -LINE / 2], [-off - long, -LINE / 2], [-long / 2, size + 1], [-long / 2, -size - 1 - LINE],
      [size, size / 2], [-size - long, size / 2], [size, -size / 2 - LINE], [-size - long, -size / 2 - LINE]
    ].map(([dx = 0, dy = 0]) => ({ x: x + dx, y: y + dy })))];
  });
};

const drawNames = (context: CanvasRenderingContext2D, points: readonly Point[], size: number, width: number, height: number, scene: Scene): void => {
  const nodes = points.length > MOST_NAMED ? [] : points.map(({ x, y }) => ({ x: x - size, y: y - size, width: 2 * size, height: 2 * size }));
  write(context, [...groupNames(context, points, size, width, height, scene), ...nodeNames(context, points, size, width, scene)], nodes, width, height);
};

export const drawFlow = (context: CanvasRenderingContext2D, width: number, height: number, scene: Scene): void => {
  const [points, size, groups] = [allPlaced(scene, width, height), radius(scene, width, height), groupsOf(scene)];
  drawRegions(context, points, size, scene);
  drawArcs(context, points, scene);
  points.forEach((point, node) => drawNode(context, point, size, groups[node] ?? [], scene.frame.down.has(node) ? 'down' : node === scene.seen ? 'seen' : 'up'));
  drawNames(context, points, size, width, height, scene);
};

/** Of what is quiet the most shows through. */
const OPACITY = [70, 110, 160, 210, 256];

/** What does not change with what flows, and from which it was made. */
interface Still { of: readonly unknown[]; below: Int32Array; points: Point[]; colours: readonly (readonly number[])[]; shape: Disc }

/** A scene of many nodes and arcs. Regions and names are drawn when something moves; arcs and nodes are written into a copy of the
 *  regions' pixels. */
export class Crowd {
  private still: Still | undefined;
  private readonly below = sheet();
  private readonly above = sheet();
  private image = new ImageData(1, 1);

  draw(context: CanvasRenderingContext2D, scene: Scene): void {
    const { width, height } = context.canvas;
    if (width === 0 || height === 0) return;
    if (this.image.width !== width || this.image.height !== height) this.image = new ImageData(width, height);
    const { below, points, colours, shape } = this.standing(width, height, scene);
    const pixels = { width, at: new Int32Array(this.image.data.buffer) };
    pixels.at.set(below);
    scene.arcs.forEach((edges, level) => {
      const colour = packed(HEAT[look()][level] ?? '');
      for (const edge of edges) {
        const a = points[edge[0]];
        const b = points[edge[1]];
        if (a !== undefined && b !== undefined && isShown(edge, scene)) line(pixels, a.x, a.y, b.x, b.y, colour, scene.seen === undefined ? OPACITY[level] : 256);
      }
    });
    points.forEach(({ x, y }, node) => stamp(pixels, x, y, shape, colours[node] ?? []));
    context.putImageData(this.image, 0, 0);
    for (const node of [...scene.frame.down, ...scene.seen === undefined ? [] : [scene.seen]]) {
      const point = points[node];
      if (point !== undefined) drawNode(context, point, radius(scene, width, height), [], scene.frame.down.has(node) ? 'down' : 'seen');
    }
    context.drawImage(this.above.canvas, 0, 0);
  }

  private standing(width: number, height: number, scene: Scene): Still {
    const of = [width, height, look(), scene.frame.groups, scene.force, scene.force.turn];
    if (this.still?.of.every((is, i) => is === of[i])) return this.still;
    const [points, size] = [allPlaced(scene, width, height), radius(scene, width, height)];
    const { below, above } = this;
    for (const { canvas } of [below, above]) Object.assign(canvas, { width, height });
    below.fillStyle = ink('--paper');
    below.fillRect(0, 0, width, height);
    drawRegions(below, points, size, scene);
    drawNames(above, points, size, width, height, scene);
    const none = [packed(ink('--soft'))];
    const colours = groupsOf(scene).map(its => its.length === 0 ? none : its.map(g => packed(curve(g).color)));
    return this.still = { of, below: new Int32Array(below.getImageData(0, 0, width, height).data.buffer), points, colours, shape: disc(size) };
  }
}

/** The queues about a circle: those of a core next to each other, a gap between cores and a wider one between chips. */
export const drawQueues = (context: CanvasRenderingContext2D, width: number, height: number, { queues, migrations, places }: Load, arcs: readonly (readonly [number, number, number, number])[]): void => {
  const [text, soft, rim] = [ink('--ink'), ink('--soft'), ink('--line')];
  const [cx, cy] = [width / 2, height / 2];
  const inner = Math.max(40, 0.27 * Math.min(width, height));
  const room = Math.max(20, 0.46 * Math.min(width, height) - inner - 18);
  const order = queues.map((_, i) => i).sort((a, b) => (places[a]?.[0] ?? 0) - (places[b]?.[0] ?? 0) || (places[a]?.[1] ?? 0) - (places[b]?.[1] ?? 0) || (places[a]?.[2] ?? 0) - (places[b]?.[2] ?? 0));
  const gap = (i: number): number => {
    const [a, b] = [order[i], order[(i + 1) % order.length]];
    if (a === undefined || b === undefined || order.length === 1) return 0;
    return { thread: 0.15, core: 0.6, chip: 1.8 }[a === b ? 'thread' : distance(places[a], places[b])];
  };
  const all = order.reduce((sum, _, i) => sum + 1 + gap(i), 0);
  const angles: [number, number][] = [];
  let at = -Math.PI / 2;
  order.forEach((queue, i) => {
    const wide = 2 * Math.PI / all;
    angles[queue] = [at, at + wide];
    at += wide * (1 + gap(i));
  });
  const most = Math.max(4, ...queues);
  context.font = FONT;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  queues.forEach((length, queue) => {
    const [from, to] = angles[queue] ?? [0, 0];
    context.beginPath();
    context.arc(cx, cy, inner, from, to);
    context.arc(cx, cy, inner + room, to, from, true);
    context.closePath();
    context.strokeStyle = rim;
    context.lineWidth = 1;
    context.stroke();
    context.beginPath();
    context.arc(cx, cy, inner, from, to);
    context.arc(cx, cy, inner + 2 + (room - 2) * Math.min(1, length / most), to, from, true);
    context.closePath();
    context.fillStyle = heat(Math.min(1, length / most));
    context.fill();
    const middle = (from + to) / 2;
    context.fillStyle = queues.length <= 32 ? text : 'transparent';
    context.fillText(String(queue + 1), cx + (inner + room + 12) * Math.cos(middle), cy + (inner + room + 12) * Math.sin(middle));
    context.fillStyle = soft;
    if (queues.length <= 16) context.fillText(String(length), cx + (inner - 14) * Math.cos(middle), cy + (inner - 14) * Math.sin(middle));
  });
  const end = (queue: number): Point | undefined => {
    const angle = angles[queue - 1];
    return angle && { x: cx + (inner - 26) * Math.cos((angle[0] + angle[1]) / 2), y: cy + (inner - 26) * Math.sin((angle[0] + angle[1]) / 2) };
  };
  const draw = (from: number, to: number, times: number, alpha: number): void => {
    const [a, b] = [end(from), end(to)];
    if (a === undefined || b === undefined) return;
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.quadraticCurveTo(cx + 0.25 * (a.y - b.y), cy + 0.25 * (b.x - a.x), b.x, b.y);
    context.strokeStyle = far(distance(places[from - 1], places[to - 1]));
    context.lineWidth = Math.min(8, 1 + Math.log2(1 + times));
    context.globalAlpha = alpha;
    context.stroke();
  };
  // Older ones fade.
  for (const [from, to, times, age] of arcs) draw(from, to, times, Math.max(0.05, 0.6 - 0.12 * age));
  for (const [from, to, times] of migrations) draw(from, to, times, 0.95);
  context.globalAlpha = 1;
  context.textAlign = 'left';
  context.textBaseline = 'alphabetic';
};

/** Lengths of mailboxes over time: a line for each of those that were the longest, with its name at its end. */
export const drawMailboxes = (context: CanvasRenderingContext2D, width: number, height: number, frames: readonly Frame[], node: number): void => {
  const shown = mailboxes(frames, node).sort((a, b) => b.most - a.most || (a.name < b.name ? -1 : 1)).slice(0, 5);
  const most = Math.max(1, ...shown.map(({ most }) => most));
  const [left, bottom] = [52, height - 22];
  context.font = FONT;
  context.fillStyle = ink('--soft');
  context.strokeStyle = ink('--line');
  context.lineWidth = 1;
  for (const part of [0, 0.5, 1]) {
    const y = bottom - part * (bottom - 12);
    context.beginPath();
    context.moveTo(left, y + 0.5);
    context.lineTo(width - 8, y + 0.5);
    context.stroke();
    context.textAlign = 'right';
    context.fillText(Math.round(part * most).toLocaleString('en'), left - 6, y + 4);
  }
  const xOf = (i: number): number => left + (width - 8 - left) * i / Math.max(1, frames.length - 1);
  const yOf = (length: number): number => bottom - (bottom - 12) * length / most;
  shown.forEach(({ lengths }, s) => {
    const { color, dash } = curve(s);
    context.strokeStyle = color;
    context.setLineDash(dash);
    context.lineWidth = 2;
    context.beginPath();
    lengths.forEach((length, i) => {
      if (length === undefined) return;
      if (lengths[i - 1] === undefined) context.moveTo(xOf(i), yOf(length)); else context.lineTo(xOf(i), yOf(length));
    });
    context.stroke();
  });
  context.setLineDash([]);
  write(context, shown.map(({ name, lengths }, s) => written(context, shortened(name, MOST_LETTERS), FONT, curve(s).color, long => {
    const y = yOf(lengths.at(-1) ?? 0);
    return [y - LINE - 2, y + 2, ...shown.flatMap((_, n) => [y - (n + 2) * LINE, y + (n + 1) * LINE])].map(y => ({ x: width - 10 - long, y }));
  })), [], width, height);
};
