// SPDX-License-Identifier: Apache-2.0
// How a view reads what the page knows, and asks for what it does not.
import { useCallback, useEffect, useReducer, useRef, useState } from 'preact/hooks';
import type { Ask } from '../api.js';
import { live } from '../live.js';
import { onLook } from '../look.js';
import { parse, type Route } from '../route.js';
import type { State } from '../state.js';

/** A part of the state; the view is drawn again when that part is another one. */
export const useLive = <Part>(part: (state: State) => Part): Part => {
  const [, again] = useReducer<number, void>(n => n + 1, 0);
  const now = part(live.state);
  const drawn = useRef(now);
  drawn.current = now;
  const read = useRef(part);
  read.current = part;
  useEffect(() => live.subscribe(() => {
    if (!Object.is(read.current(live.state), drawn.current)) again();
  }), []);
  return now;
};

export const useRoute = (): Route => {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const turned = (): void => setRoute(parse(location.hash));
    addEventListener('hashchange', turned);
    return () => removeEventListener('hashchange', turned);
  }, []);
  return route;
};

export interface Asked<Answer> {
  answer: Answer | undefined;
  /** Of the last question, if it failed; the answer before it is still there. */
  failure: string | undefined;
  again: () => void;
}

/** Asks when `key` is another one, and again after `every` milliseconds while somebody looks. */
export const useAsk = <Answer>(key: string, ask: Ask<Answer>, every = 0): Asked<Answer> => {
  const [is, setIs] = useState<{ key: string; answer?: Answer; failure?: string }>({ key });
  const [turn, again] = useReducer<number, void>(n => n + 1, 0);
  useEffect(() => {
    const control = new AbortController();
    let next: ReturnType<typeof setTimeout> | undefined;
    const turnOver = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const answer = await ask(control.signal);
          if (control.signal.aborted) return;
          setIs({ key, answer });
        } catch (error) {
          if (control.signal.aborted) return;
          const failure = error instanceof Error ? error.message : String(error);
          setIs(was => was.key === key ? { ...was, failure } : { key, failure });
        }
      }
      if (every > 0) next = setTimeout(() => void turnOver(), every);
    };
    void turnOver();
    return () => { control.abort(); clearTimeout(next); };
  }, [key, turn, every]);
  const mine = is.key === key ? is : { key };
  return { answer: mine.answer, failure: mine.failure, again };
};

/** Draws again when it becomes light or dark. */
export const useLook = (): void => {
  const [, again] = useReducer<number, void>(n => n + 1, 0);
  useEffect(() => onLook(again), []);
};

/** What was typed, once nothing has been typed for a while. */
export const useSettled = (text: string, ms = 250): string => {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const wait = setTimeout(() => setSettled(text), ms);
    return () => clearTimeout(wait);
  }, [text]);
  return settled;
};

/** Something that is done to the server: whether it is under way, and why it failed. */
export const useDeed = (): { busy: boolean; failure: string | undefined; does: (deed: () => Promise<unknown>) => Promise<boolean> } => {
  const [is, setIs] = useState<{ busy: boolean; failure: string | undefined }>({ busy: false, failure: undefined });
  const does = useCallback(async (deed: () => Promise<unknown>): Promise<boolean> => {
    setIs({ busy: true, failure: undefined });
    try {
      await deed();
      setIs({ busy: false, failure: undefined });
      return true;
    } catch (error) {
      setIs({ busy: false, failure: error instanceof Error ? error.message : String(error) });
      return false;
    }
  }, []);
  return { ...is, does };
};
