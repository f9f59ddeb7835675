// SPDX-License-Identifier: Apache-2.0
// Chooses some of many, thousands too: a box to search in, and a list to tick.
import { useMemo, useState } from 'preact/hooks';
import { finder } from '../sort.js';
import { Name, Search } from './parts.js';
import { useList } from './scroll.js';

export interface Item { key: string; note: string }

interface Props {
  title: string;
  items: readonly Item[];
  chosen: readonly string[];
  /** No more than so many. */
  most: number;
  onChange: (chosen: string[]) => void;
}

const ROW_PX = 30;
/** Where it would push down what is chosen. */
const NARROW_PX = 960;

export const Pick = ({ title, items, chosen, most, onChange }: Props) => {
  const [search, setSearch] = useState('');
  const shown = useMemo(() => {
    const found = finder(search);
    return items.filter(({ key, note }) => found(`${key} ${note}`));
  }, [items, search]);
  const { ref, rows: { from, to, above, below }, active, onKeyDown, onFocus } = useList<HTMLUListElement>(shown.length, ROW_PX);
  const full = chosen.length >= most;
  const turn = (key: string): void => onChange(chosen.includes(key) ? chosen.filter(each => each !== key) : [...chosen, key]);
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== ' ' && event.key !== 'Enter') return onKeyDown(event);
    event.preventDefault();
    (event.target as HTMLElement).click();
  };
  return <details class="pick" open={innerWidth > NARROW_PX}>
    <summary>{title} <span class="soft">{chosen.length} of at most {most}</span></summary>
    <Search label={`Search ${title.toLowerCase()}`} value={search} onInput={setSearch} />
    {chosen.length > 0 && <p class="chips">{chosen.map(key =>
      <button key={key} type="button" onClick={() => turn(key)} aria-label={`Take ${key} away`}><Name>{key}</Name> <span aria-hidden="true">×</span></button>)}</p>}
    <div class="scroll">
      <ul ref={ref} role="listbox" aria-multiselectable="true" aria-label={title} onKeyDown={keys} onFocusIn={onFocus} style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
        {shown.slice(from, to).map(({ key, note }, i) => {
          const is = chosen.includes(key);
          return <li key={key} role="option" aria-selected={is} aria-disabled={!is && full} aria-setsize={shown.length} aria-posinset={from + i + 1}
            data-at={from + i} tabIndex={from + i === active ? 0 : -1} title={note} onClick={() => { if (is || !full) turn(key); }}>
            <span class="tick" aria-hidden="true">{is ? '☑' : '☐'}</span><bdi class="name">{key}</bdi>
          </li>;
        })}
      </ul>
    </div>
    {shown.length === 0 && <p class="soft">None is so.</p>}
  </details>;
};
