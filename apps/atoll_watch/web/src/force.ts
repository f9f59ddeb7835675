// SPDX-License-Identifier: Apache-2.0
// Where nodes stand in the picture of what flows: those of a group near each other, those that are in several between them, and
// none upon another. A step moves all a little; after some it rests. Nodes push each other within cells of a grid only, so a step
// costs as much as there are nodes. The same nodes and groups give the same picture.
import type { Group } from './film.js';

export interface Point { x: number; y: number }

const COOLING = 0.985;
const LEAST_HEAT = 0.02;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

export class Force {
  readonly points: Point[] = [];
  /** Another one after each move. */
  turn = 0;
  private groups: readonly Group[] = [];
  private homes: Point[] = [];
  private heat = 1;
  private count = 0;

  /** The room that a node has, if the whole is a square of 1. */
  get room(): number { return 0.8 / Math.sqrt(Math.max(1, this.count)); }

  get rests(): boolean { return this.heat <= LEAST_HEAT; }

  /** Other groups or more nodes set it in motion again; what stands stays near. */
  set(count: number, groups: readonly Group[]): void {
    if (count === this.count && groups === this.groups) return;
    this.count = count;
    this.groups = groups;
    const of: number[][] = Array.from({ length: count }, () => []);
    groups.forEach(({ nodes }, g) => nodes.forEach(node => of[node]?.push(g)));
    const centre = (g: number): Point => {
      const angle = 2 * Math.PI * g / Math.max(1, groups.length) - Math.PI / 2;
      const far = groups.length > 1 ? 0.34 : 0;
      return { x: 0.5 + far * Math.cos(angle), y: 0.5 + far * Math.sin(angle) };
    };
    this.homes = of.map(its => {
      if (its.length === 0) return { x: 0.5, y: 0.5 };
      const centres = its.map(centre);
      return { x: centres.reduce((sum, { x }) => sum + x, 0) / its.length, y: centres.reduce((sum, { y }) => sum + y, 0) / its.length };
    });
    // Each new one in a spiral about its home.
    for (let node = this.points.length; node < count; node += 1) {
      const { x, y } = this.homes[node] as Point;
      const far = 0.5 * this.room * Math.sqrt(node + 1) * (groups.length > 1 ? 0.4 : 1);
      this.points.push({ x: x + far * Math.cos(node * GOLDEN), y: y + far * Math.sin(node * GOLDEN) });
    }
    this.points.length = count;
    this.heat = 1;
    this.turn += 1;
  }

  step(): void {
    if (this.rests) return;
    const { points, room } = this;
    const reach = 1.6 * room;
    const across = Math.max(1, Math.floor(1 / reach));
    const cell = (v: number): number => Math.max(0, Math.min(across - 1, Math.floor(v * across)));
    const cells: number[][] = Array.from({ length: across * across }, () => []);
    points.forEach(({ x, y }, i) => cells[cell(y) * across + cell(x)]?.push(i));
    const moves = points.map((point, i) => {
      const home = this.homes[i] as Point;
      let [dx, dy] = [0.04 * (home.x - point.x), 0.04 * (home.y - point.y)];
      const [cx, cy] = [cell(point.x), cell(point.y)];
      for (let row = Math.max(0, cy - 1); row <= Math.min(across - 1, cy + 1); row += 1) {
        for (let column = Math.max(0, cx - 1); column <= Math.min(across - 1, cx + 1); column += 1) {
          for (const j of cells[row * across + column] ?? []) {
            if (j === i) continue;
            const other = points[j] as Point;
            const [ox, oy] = [point.x - other.x, point.y - other.y];
            const far = Math.sqrt(ox * ox + oy * oy);
            if (far >= reach) continue;
            // Two at one place go apart by their numbers.
            const push = 0.25 * (reach - far) / (far || 1);
            dx += far === 0 ? 0.1 * room * Math.cos(i) : ox * push;
            dy += far === 0 ? 0.1 * room * Math.sin(i) : oy * push;
          }
        }
      }
      return { dx, dy };
    });
    moves.forEach(({ dx, dy }, i) => {
      const point = points[i] as Point;
      const most = room * this.heat / Math.max(room * this.heat, Math.hypot(dx, dy));
      point.x = Math.max(0.02, Math.min(0.98, point.x + dx * most));
      point.y = Math.max(0.02, Math.min(0.98, point.y + dy * most));
    });
    this.heat *= COOLING;
    this.turn += 1;
  }
}

/** The least convex way about some points, in order. */
export const hull = (points: readonly Point[]): Point[] => {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  if (sorted.length < 3) return sorted;
  const turn = (o: Point, a: Point, b: Point): number => (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
  const half = (list: readonly Point[]): Point[] => {
    const kept: Point[] = [];
    for (const point of list) {
      while (kept.length >= 2 && turn(kept.at(-2) as Point, kept.at(-1) as Point, point) <= 0) kept.pop();
      kept.push(point);
    }
    return kept.slice(0, -1);
  };
  return [...half(sorted), ...half([...sorted].reverse())];
};
