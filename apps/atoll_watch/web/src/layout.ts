// SPDX-License-Identifier: Apache-2.0
// Where the groups and their nodes stand in the picture: each group is a box, the boxes fill
// shelves from left to right. A node of several groups stands in each of them.

export interface Group { name: string; nodes: readonly string[] }
export interface Box { name: string; count: number; x: number; y: number; width: number; height: number }
export interface Dot { node: string; x: number; y: number }
export interface Layout { boxes: Box[]; dots: Dot[]; height: number }
/** The room of a node; what is wider than high has its name beside it. */
export interface Cell { width: number; height: number }

const PAD = 12;
const HEAD = 26;
const BETWEEN = 16;
const LEAST_WIDTH = 130;

export const laidOut = (groups: readonly Group[], width: number, cell: Cell): Layout => {
  const boxes: Box[] = [];
  const dots: Dot[] = [];
  let [x, y, shelf] = [0, 0, 0];
  for (const { name, nodes } of groups) {
    const room = Math.max(1, Math.floor((width - 2 * PAD) / cell.width));
    const across = Math.min(room, Math.max(1, Math.floor((LEAST_WIDTH - 2 * PAD) / cell.width), Math.ceil(Math.sqrt(nodes.length * 2.5 * cell.height / cell.width))));
    const box = { name, count: nodes.length, x, y, width: across * cell.width + 2 * PAD, height: HEAD + Math.ceil(nodes.length / across) * cell.height + PAD };
    if (x > 0 && x + box.width > width) {
      [box.x, box.y] = [x, y] = [0, y + shelf + BETWEEN];
      shelf = 0;
    }
    boxes.push(box);
    nodes.forEach((node, i) => dots.push({
      node, x: box.x + PAD + cell.width * (i % across) + cell.height / 2, y: box.y + HEAD + cell.height * (Math.floor(i / across) + 0.5)
    }));
    x += box.width + BETWEEN;
    shelf = Math.max(shelf, box.height);
  }
  return { boxes, dots, height: y + shelf };
};

/** The nearest two of the places that two nodes have. */
export const closest = (from: readonly Dot[], to: readonly Dot[]): [Dot, Dot] | undefined => {
  let best: [Dot, Dot] | undefined;
  let least = Infinity;
  for (const a of from) {
    for (const b of to) {
      const far = (a.x - b.x) ** 2 + (a.y - b.y) ** 2;
      if (far < least) [best, least] = [[a, b], far];
    }
  }
  return best;
};

const WAYS: Record<string, readonly [number, number]> = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** The dot that an arrow key leads to: the nearest one that way, what lies aside counting double. */
export const nearest = (dots: readonly Dot[], from: number, key: string): number | undefined => {
  const way = WAYS[key];
  const here = dots[from];
  if (way === undefined || here === undefined) return undefined;
  let best: number | undefined;
  let least = Infinity;
  dots.forEach(({ x, y }, i) => {
    const along = (x - here.x) * way[0] + (y - here.y) * way[1];
    const aside = Math.abs((x - here.x) * way[1] + (y - here.y) * way[0]);
    if (along <= 0) return;
    const far = along + 2 * aside;
    if (far < least) [best, least] = [i, far];
  });
  return best;
};
