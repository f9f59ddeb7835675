// SPDX-License-Identifier: Apache-2.0
// Long lists: only what is in view is drawn, and one row at a time can be tabbed to; the
// arrow keys go from there.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';
import { moved, rowsIn, type Rows } from '../rows.js';

export interface List<Box extends HTMLElement> {
  /** Of the element that holds the rows and nothing else. */
  ref: RefObject<Box | null>;
  rows: Rows;
  /** The cell that Tab leads to. */
  active: number;
  onKeyDown: (event: KeyboardEvent) => void;
  onFocus: (event: FocusEvent) => void;
}

/** What cuts a list off: the nearest box that scrolls, or the window. */
const cutBy = (list: Element): { box: Element | null; top: number; bottom: number } => {
  const box = list.closest('.scroll');
  const edges = box?.getBoundingClientRect();
  return { box, top: Math.max(0, edges?.top ?? 0), bottom: Math.min(innerHeight, edges?.bottom ?? innerHeight) };
};

const place = (element: EventTarget | null): number =>
  Number((element instanceof Element ? element.closest<HTMLElement>('[data-at]') : null)?.dataset.at ?? -1);

/** A list of `count` cells, `across` to a row, of rows that are all `height` high. */
export const useList = <Box extends HTMLElement>(count: number, height: number, across = 1): List<Box> => {
  const ref = useRef<Box>(null);
  const lines = Math.ceil(count / across);
  const [rows, setRows] = useState(() => rowsIn(lines, height, 0, 900));
  const [active, setActive] = useState(0);
  const focusing = useRef(false);

  const look = (): void => {
    const list = ref.current;
    if (list === null) return;
    const { top, bottom } = cutBy(list);
    const now = rowsIn(lines, height, top - list.getBoundingClientRect().top, Math.max(0, bottom - top));
    setRows(was => was.from === now.from && was.to === now.to && was.below === now.below ? was : now);
  };

  useLayoutEffect(() => {
    let asked = 0;
    const later = (): void => { asked ||= requestAnimationFrame(() => { asked = 0; look(); }); };
    look();
    // Captured: the scrolling of a box does not bubble.
    addEventListener('scroll', later, { capture: true, passive: true });
    addEventListener('resize', later);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener('scroll', later, { capture: true });
      removeEventListener('resize', later);
    };
  }, [lines, height]);

  useLayoutEffect(() => {
    if (!focusing.current) return;
    const cell = ref.current?.querySelector<HTMLElement>(`[data-at="${active}"]`);
    if (cell === null || cell === undefined) return;
    focusing.current = false;
    cell.focus({ preventScroll: true });
  });

  const reveal = (at: number): void => {
    const list = ref.current;
    if (list === null) return;
    const { box, top, bottom } = cutBy(list);
    // What sticks to the top hides what is under it.
    const head = box?.querySelector('thead')?.offsetHeight ?? 0;
    const from = list.getBoundingClientRect().top + Math.floor(at / across) * height;
    const by = from < top + head ? from - top - head : Math.max(0, from + height - bottom);
    if (by !== 0) (box ?? window).scrollBy({ top: by, behavior: 'instant' });
    look();
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const at = place(event.target);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey || (event.target as Element).matches('input, select, textarea')) return;
    const to = moved(event.key, at, count, across);
    if (to === undefined) return;
    event.preventDefault();
    focusing.current = true;
    setActive(to);
    reveal(to);
  };

  const onFocus = (event: FocusEvent): void => {
    const at = place(event.target);
    if (at >= 0 && at !== active) setActive(at);
  };

  // What Tab leads to is drawn: the first row in view where the active one is not.
  const drawn = Math.floor(active / across) >= rows.from && Math.floor(active / across) < rows.to && active < count;
  return { ref, rows, active: drawn ? active : rows.from * across, onKeyDown, onFocus };
};
