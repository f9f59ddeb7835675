// SPDX-License-Identifier: Apache-2.0
// Reads a list page by page.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Ask, Page } from '../api.js';
import { merged } from '../pages.js';

export interface Pages<Item> {
  items: Item[] | undefined;
  total: number;
  failure: string | undefined;
  busy: boolean;
  /** Asks for the next page; undefined where there is none. */
  more: (() => void) | undefined;
}

interface Read<Item> { key: string; items: Item[] | undefined; next: string | undefined; total: number; failure: string | undefined; busy: boolean }

/** Begins again when `key` is another one; `fresh` has come since. */
export const usePages = <Item extends { id: number }>(key: string, ask: (cursor: string | undefined) => Ask<Page<Item>>, fresh: readonly Item[]): Pages<Item> => {
  const none: Read<Item> = { key, items: undefined, next: undefined, total: 0, failure: undefined, busy: true };
  const [read, setRead] = useState(none);
  const mine = read.key === key ? read : none;

  const load = async (cursor: string | undefined, signal?: AbortSignal): Promise<void> => {
    const change = (to: (was: Read<Item>) => Partial<Read<Item>>): void => setRead(was => was.key === key ? { ...was, ...to(was) } : was);
    try {
      const page = await ask(cursor)(signal);
      change(was => ({ items: [...(cursor === undefined ? [] : was.items ?? []), ...page.items], next: page.next ?? undefined, total: page.total, failure: undefined, busy: false }));
    } catch (error) {
      if (signal?.aborted !== true) change(() => ({ failure: error instanceof Error ? error.message : String(error), busy: false }));
    }
  };

  useEffect(() => {
    const control = new AbortController();
    setRead(none);
    void load(undefined, control.signal);
    return () => control.abort();
  }, [key]);

  const items = useMemo(() => mine.items && merged(fresh, mine.items), [fresh, mine.items]);
  const more = mine.next === undefined ? undefined : () => { setRead({ ...mine, busy: true }); void load(mine.next); };
  return { items, total: mine.total, failure: mine.failure, busy: mine.busy, more };
};
