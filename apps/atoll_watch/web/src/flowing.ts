// SPDX-License-Identifier: Apache-2.0
// Draws what flows, on canvases. High level: groups as regions that overlap, nodes, and arcs between them from quiet to busy. Low
// level: the run queues of one node about a circle, by chip, core and thread, with migrations as arcs across it.
// Where a colour says something, a width or a height says it too.
import { busy, distance, type Distance, type Edge, type Frame, type Load } from './film.js';
import { hull, type Force, type Point } from './force.js';
import { curve, ink, look } from './look.js';

/** From quiet to busy. */
const HEAT: Record<'light' | 'dark', readonly string[]> = {
  light: ['#1b6e3c', '#5c7a1f', '#8a7a00', '#b36200', '#b3261e'],
  dark: ['#6fd19a', '#a8cf6a', '#e8c34a', '#ffab6b', '#ff6f61']
};
const FAR: Record<'light' | 'dark', Record<Distance, string>> = {
  light: { thread: '#1b6e3c', core: '#6b7683', chip: '#0b62c4' },
  dark: { thread: '#6fd19a', core: '#a3afbd', chip: '#62aeff' }
};
export const heat = (share: number): string => HEAT[look()][Math.min(4, Math.floor(share * 5))] ?? '';
export const far = (of: Distance): string => FAR[look()][of];

/** A canvas of that many pixels of the page, sharp on every screen. */
export const paper = (canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | undefined => {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext('2d') ?? undefined;
  context?.setTransform(scale, 0, 0, scale, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
};

export interface Scene { frame: Frame; names: readonly string[]; edges: readonly Edge[]; by: 'count' | 'bytes'; force: Force; seen: number | undefined }

const FONT = '13px system-ui, sans-serif';
const MOST_NAMED = 60;
const MOST_BENT = 1000;
const MOST_LETTERS = 24;
const PAD = 28;

export const placed = ({ x, y }: Point, width: number, height: number): Point => ({ x: PAD + x * (width - 2 * PAD), y: PAD + y * (height - 2 * PAD) });

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

export const drawFlow = (context: CanvasRenderingContext2D, width: number, height: number, { frame, names, edges, by, force, seen }: Scene): void => {
  const points = force.points.map(point => placed(point, width, height));
  const size = Math.max(2.5, Math.min(9, 0.22 * force.room * Math.min(width, height)));
  const [text, line, edge] = [ink('--ink'), ink('--paper'), ink('--soft')];

  // Regions: what is in two groups lies where both are.
  frame.groups.forEach(({ nodes }, g) => {
    const colour = curve(g).color;
    context.globalAlpha = 0.13;
    context.fillStyle = context.strokeStyle = colour;
    const layer = hull(nodes.flatMap(node => points[node] ?? []));
    if (layer.length > 0) region(context, layer, size * 1.6 + 10);
  });
  context.globalAlpha = 1;

  // Arcs of one colour and width are one path, and many of them are straight and opaque: that is what makes thousands of them quick.
  const shares = busy(edges, by);
  const many = edges.length > MOST_BENT;
  for (let level = 0; level < 5; level += 1) {
    context.strokeStyle = HEAT[look()][level] ?? '';
    context.lineWidth = 0.6 + level * 0.7;
    context.globalAlpha = many ? 1 : 0.8;
    if (many) context.lineWidth = 1;
    context.beginPath();
    edges.forEach(([from, to], i) => {
      if (Math.min(4, Math.floor((shares[i] ?? 0) * 5)) !== level || seen !== undefined && from !== seen && to !== seen) return;
      const [a, b] = [points[from], points[to]];
      if (a === undefined || b === undefined) return;
      // Bent to one side, so that both ways show.
      context.moveTo(a.x, a.y);
      if (many) context.lineTo(b.x, b.y);
      else context.quadraticCurveTo((a.x + b.x) / 2 + 0.12 * (b.y - a.y), (a.y + b.y) / 2 - 0.12 * (b.x - a.x), b.x, b.y);
    });
    context.stroke();
  }
  context.globalAlpha = 1;

  const of: number[][] = points.map(() => []);
  frame.groups.forEach(({ nodes }, g) => nodes.forEach(node => of[node]?.push(g)));
  points.forEach(({ x, y }, node) => {
    const its = of[node] ?? [];
    const parts = Math.max(1, its.length);
    for (let part = 0; part < parts; part += 1) {
      context.beginPath();
      context.moveTo(x, y);
      context.arc(x, y, size, 2 * Math.PI * part / parts - Math.PI / 2, 2 * Math.PI * (part + 1) / parts - Math.PI / 2);
      context.fillStyle = frame.down.has(node) ? line : its[part] === undefined ? edge : curve(its[part] ?? 0).color;
      context.fill();
    }
    if (size > 4 || frame.down.has(node) || node === seen) {
      context.beginPath();
      context.arc(x, y, size, 0, 2 * Math.PI);
      context.strokeStyle = frame.down.has(node) ? ink('--critical') : node === seen ? text : line;
      context.lineWidth = node === seen || frame.down.has(node) ? 2 : 1;
      context.stroke();
    }
  });

  context.font = FONT;
  context.lineWidth = 4;
  context.lineJoin = 'round';
  context.strokeStyle = line;
  context.fillStyle = text;
  if (points.length <= MOST_NAMED) {
    points.forEach(({ x, y }, node) => {
      const name = names[node]?.replace(/@[^@]*$/, '').slice(0, MOST_LETTERS) ?? '';
      const wide = context.measureText(name).width;
      const left = Math.min(x + size + 4, width - wide - 2);
      context.strokeText(name, left, y + 4);
      context.fillText(name, left, y + 4);
    });
  }
  context.textAlign = 'center';
  context.font = `600 ${FONT}`;
  frame.groups.forEach(({ name, nodes }, g) => {
    const its = nodes.flatMap(node => points[node] ?? []);
    if (its.length === 0 || frame.groups.length > 40) return;
    const x = its.reduce((sum, point) => sum + point.x, 0) / its.length;
    const y = Math.max(14, Math.min(...its.map(point => point.y)) - size * 1.6 - 10);
    context.strokeText(name, x, y);
    context.fillStyle = curve(g).color;
    context.fillText(name, x, y);
  });
  context.textAlign = 'left';
};

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

/** Lengths of mailboxes over time: a line for each of those that were the longest. */
export const drawMailboxes = (context: CanvasRenderingContext2D, width: number, height: number, frames: readonly Frame[], node: number): { name: string; color: string; length: number }[] => {
  const series = new Map<string, (number | undefined)[]>();
  frames.forEach((frame, i) => {
    for (const [name, length] of frame.loads.find(load => load.node === node)?.mailboxes ?? []) {
      const its = series.get(name) ?? [];
      its[i] = length;
      series.set(name, its);
    }
  });
  const shown = [...series].map(([name, its]) => ({ name, its, most: Math.max(0, ...its.map(n => n ?? 0)) })).sort((a, b) => b.most - a.most || (a.name < b.name ? -1 : 1)).slice(0, 5);
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
  context.textAlign = 'left';
  shown.forEach(({ its }, s) => {
    const { color, dash } = curve(s);
    context.strokeStyle = color;
    context.setLineDash(dash);
    context.lineWidth = 2;
    context.beginPath();
    frames.forEach((_, i) => {
      const x = left + (width - 8 - left) * i / Math.max(1, frames.length - 1);
      const y = bottom - (bottom - 12) * (its[i] ?? 0) / most;
      if (i === 0) context.moveTo(x, y); else context.lineTo(x, y);
    });
    context.stroke();
  });
  context.setLineDash([]);
  return shown.map(({ name, its }, s) => ({ name, color: curve(s).color, length: its[frames.length - 1] ?? 0 }));
};
