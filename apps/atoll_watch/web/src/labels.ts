// SPDX-License-Identifier: Apache-2.0
// Where names stand in a picture: next to what they name, and never one upon another.

/** By its upper left corner. */
export interface Box { x: number; y: number; width: number; height: number }

const isApart = (a: Box, b: Box): boolean => a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;

/** Each box gets the first of its places that is within the picture and free of all boxes before it, and of what is to be seen, if
 *  it can; one without such a place gets none. */
export const spread = (wanted: readonly (readonly Box[])[], seen: readonly Box[], width: number, height: number): (Box | undefined)[] => {
  const taken: Box[] = [];
  return wanted.map(places => {
    const free = places.filter(box => box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height && taken.every(other => isApart(box, other)));
    const best = free.find(box => seen.every(other => isApart(box, other))) ?? free[0];
    if (best !== undefined) taken.push(best);
    return best;
  });
};

/** A name of so many letters at most. What is left out is in its middle: many begin with the same, and end with a number. */
export const shortened = (name: string, letters: number): string => {
  const all = [...name];
  const end = Math.floor((letters - 1) / 2);
  return all.length <= letters ? name : [...all.slice(0, letters - 1 - end), '…', ...all.slice(all.length - end)].join('');
};
