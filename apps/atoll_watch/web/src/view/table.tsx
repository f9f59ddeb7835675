// SPDX-License-Identifier: Apache-2.0
// A table of any length: its head stays, its columns sort, its rows are walked with the
// arrow keys and opened with Enter.
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { sorted, type Sortable } from '../sort.js';
import { useList } from './scroll.js';

export interface Column<Row> {
  key: string;
  title: string;
  /** Right-aligned. */
  number?: boolean;
  /** What it is sorted by; a column without is not sorted. */
  by?: (row: Row) => Sortable;
  cell: (row: Row) => ComponentChildren;
}

export interface Sort { key: string; down: boolean }

interface Props<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string | number;
  /** At first; without, the rows come as they are. */
  sort?: Sort;
  open?: (row: Row) => void;
  /** The key of the row that is open. */
  chosen?: string | number | undefined;
}

const ROW_PX = 34;

export const Table = <Row,>({ label, rows, columns, keyOf, sort: first, open, chosen }: Props<Row>) => {
  const [sort, setSort] = useState(first);
  const shown = useMemo(() => {
    const by = columns.find(({ key }) => key === sort?.key)?.by;
    return by === undefined ? rows : sorted(rows, by, sort?.down === true);
  }, [rows, sort]);
  const { ref, rows: { from, to, above, below }, active, onKeyDown, onFocus } = useList<HTMLTableSectionElement>(shown.length, ROW_PX);

  // The first click on a number shows the most of it.
  const turn = ({ key, number }: Column<Row>): void => setSort(sort?.key === key ? { key, down: !sort.down } : { key, down: number === true });
  const enter = (event: KeyboardEvent, row: Row): void => {
    if (event.key !== 'Enter' || event.target !== event.currentTarget) return;
    event.preventDefault();
    open?.(row);
  };

  return <div class="scroll">
    <table aria-label={label} aria-rowcount={shown.length + 1}>
      <thead>
        <tr aria-rowindex={1}>
          {columns.map(column => {
            const order = sort?.key !== column.key ? undefined : sort.down ? 'descending' : 'ascending';
            return <th key={column.key} scope="col" class={column.number ? 'number' : ''} aria-sort={order}>
              {column.by === undefined ? column.title
                : <button type="button" onClick={() => turn(column)}>{column.title}<span aria-hidden="true">{order === undefined ? '' : order === 'ascending' ? ' ↑' : ' ↓'}</span></button>}
            </th>;
          })}
        </tr>
      </thead>
      <tbody ref={ref} onKeyDown={onKeyDown} onFocusIn={onFocus}>
        {above > 0 && <tr class="gap" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${above}px` }} /></tr>}
        {shown.slice(from, to).map((row, i) => {
          const key = keyOf(row);
          return <tr key={key} data-at={from + i} aria-rowindex={from + i + 2} tabIndex={from + i === active ? 0 : -1}
            aria-current={key === chosen ? 'true' : undefined} class={open === undefined ? '' : 'opens'}
            onClick={open && (event => { if (!(event.target as Element).closest('a, button')) open(row); })} onKeyDown={event => enter(event, row)}>
            {columns.map(column => <td key={column.key} class={column.number ? 'number' : ''}>{column.cell(row)}</td>)}
          </tr>;
        })}
        {below > 0 && <tr class="gap" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${below}px` }} /></tr>}
      </tbody>
    </table>
  </div>;
};
