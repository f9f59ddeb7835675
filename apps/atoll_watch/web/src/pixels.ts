// SPDX-License-Identifier: Apache-2.0
// Lines and discs written into the pixels of a picture: thousands of them within a few milliseconds and without a
// graphics card, for which paths of a canvas take longer than there is between two pictures. Pure.

/** Opaque pixels as a canvas has them, row by row: red in the lowest byte of each. */
export interface Pixels { width: number; at: Int32Array }

/** A colour as `#rrggbb`, as a pixel. */
export const packed = (colour: string): number => {
  const part = (i: number): number => Number.parseInt(colour.slice(i, i + 2), 16);
  return 0xff << 24 | part(5) << 16 | part(3) << 8 | part(1);
};

const BOTH = 0xff00ff;
const GREEN = 0xff00;

/** So many 256ths of a colour over another one. Red and blue are mixed at once: what runs over stays above the mask. */
const mixed = (under: number, over: number, part: number): number => {
  const both = under & BOTH;
  const green = under & GREEN;
  return 0xff << 24 | both + (Math.imul((over & BOTH) - both, part) >> 8) & BOTH | green + (Math.imul((over & GREEN) - green, part) >> 8) & GREEN;
};

/** A line, one pixel wide and with soft edges, of which so many 256ths hide what is below. Its ends lie within the picture, by more than a pixel. */
export const line = (pixels: Pixels, x0: number, y0: number, x1: number, y1: number, colour: number, opacity = 256): void => {
  const { width, at } = pixels;
  const dx = x1 - x0;
  const dy = y1 - y0;
  const steep = Math.abs(dy) > Math.abs(dx);
  const long = steep ? dy : dx;
  const along = Math.sign(long) * (steep ? width : 1);
  const aside = steep ? 1 : width;
  // In 65,536ths of a pixel; what is left over is how much the pixel beside gets.
  const slope = long === 0 ? 0 : Math.round(65536 * (steep ? dx : dy) / Math.abs(long));
  let across = Math.round((steep ? x0 : y0) * 65536);
  let base = steep ? Math.round(y0) * width : Math.round(x0);
  for (let left = Math.round(Math.abs(long)); left >= 0; left -= 1) {
    const here = base + (across >> 16) * aside;
    const part = across >> 8 & 255;
    at[here] = mixed(at[here] as number, colour, (256 - part) * opacity >> 8);
    at[here + aside] = mixed(at[here + aside] as number, colour, part * opacity >> 8);
    base += along;
    across += slope;
  }
};

/** The pixels of a disc: where, how much of each it covers, in 256ths, and at which part of the way round, from the top. */
export type Disc = readonly { dx: number; dy: number; part: number; turn: number }[];

export const disc = (radius: number): Disc => {
  const reach = Math.ceil(radius);
  const rows = Array.from({ length: 2 * reach + 1 }, (_, i) => i - reach);
  return rows.flatMap(dy => rows.map(dx => ({
    dx, dy,
    part: Math.round(256 * Math.max(0, Math.min(1, radius + 0.5 - Math.sqrt(dx * dx + dy * dy)))),
    turn: (Math.atan2(dx, -dy) / (2 * Math.PI) + 1) % 1
  }))).filter(({ part }) => part > 0);
};

/** A disc about a point, in equal parts of these colours. It lies within the picture. */
export const stamp = (pixels: Pixels, x: number, y: number, shape: Disc, colours: readonly number[]): void => {
  const { width, at } = pixels;
  const middle = Math.round(y) * width + Math.round(x);
  for (const { dx, dy, part, turn } of shape) {
    const here = middle + dy * width + dx;
    at[here] = mixed(at[here] as number, colours[Math.floor(turn * colours.length)] as number, part);
  }
};
