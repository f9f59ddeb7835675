// SPDX-License-Identifier: Apache-2.0
// The ETS tables of a node with most memory.
import * as api from '../api.js';
import type { Table as Ets } from '../api.js';
import * as format from '../format.js';
import { useAsk } from './hooks.js';
import { Empty, Name, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';

const AGAIN_MS = 10_000;

const COLUMNS: Column<Ets>[] = [
  { key: 'name', title: 'Table', by: ({ name }) => name, cell: ({ name }) => <Name>{name}</Name> },
  { key: 'memory', title: 'Memory', number: true, by: ({ memory }) => memory, cell: ({ memory }) => format.bytes(memory) },
  { key: 'size', title: 'Objects', number: true, by: ({ size }) => size, cell: ({ size }) => format.count(size) },
  { key: 'type', title: 'Type', by: ({ type }) => type, cell: ({ type, compressed }) => `${type}${compressed ? ', compressed' : ''}` },
  { key: 'protection', title: 'Protection', by: ({ protection }) => protection, cell: ({ protection }) => protection },
  { key: 'owner', title: 'Owner', by: ({ owner, owner_name }) => owner_name ?? owner, cell: ({ owner, owner_name }) => <Name>{owner_name ?? owner}</Name> }
];

export const Tables = ({ node }: { node: string }) => {
  const { answer, failure } = useAsk(`tables ${node}`, api.tables(node), AGAIN_MS);
  if (answer === undefined) return <Waiting failure={failure} />;
  return <>
    <Trouble>{failure}</Trouble>
    <div class="controls"><p class="soft">{answer.items.length.toLocaleString('en')} of {format.plural(answer.total, 'table')}
      {answer.looked_at < answer.total && `, of which ${answer.looked_at.toLocaleString('en')} were looked at`}; asked again every 10 s</p></div>
    {answer.items.length === 0 ? <Empty>It has none.</Empty> : <Table label={`ETS tables of ${node}`} rows={answer.items} columns={COLUMNS} keyOf={({ id }) => id} />}
  </>;
};
