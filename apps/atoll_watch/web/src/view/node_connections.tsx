// SPDX-License-Identifier: Apache-2.0
// With whom a node is connected, and what goes there: its own readings.
import { useMemo } from 'preact/hooks';
import * as api from '../api.js';
import type { Reading } from '../api.js';
import * as format from '../format.js';
import { go } from '../go.js';
import { useAsk, useLive } from './hooks.js';
import { Empty, NodeLink, Trouble, Waiting } from './parts.js';
import { Table, type Column } from './table.js';

type Peer = Map<string, Reading>;
interface Row { peer: string; of: Peer }

const column = (key: string, title: string, write: (reading: Reading | undefined) => string, value: (reading: Reading) => number | null): Column<Row> => ({
  key, title, number: true, by: ({ of }) => { const reading = of.get(key); return reading && value(reading); }, cell: ({ of }) => write(of.get(key))
});

const COLUMNS: Column<Row>[] = [
  { key: 'peer', title: 'Connected with', by: ({ peer }) => peer, cell: ({ peer }) => <NodeLink node={peer} row /> },
  column('dist_in', 'In', reading => format.rate(reading?.rate, 'bytes'), ({ rate }) => rate),
  column('dist_out', 'Out', reading => format.rate(reading?.rate, 'bytes'), ({ rate }) => rate),
  column('dist_packets_in', 'Packets in', reading => format.rate(reading?.rate, null), ({ rate }) => rate),
  column('dist_packets_out', 'Packets out', reading => format.rate(reading?.rate, null), ({ rate }) => rate),
  column('dist_queue', 'Not sent yet', reading => format.value(reading?.value, 'bytes'), ({ value }) => value),
  column('atoll_round_trip', 'Round trip', reading => format.value(reading?.value, 'microseconds'), ({ value }) => value)
];

export const NodeConnections = ({ node }: { node: string }) => {
  const period = useLive(state => state.cluster?.period_ms ?? 5000);
  const { answer, failure } = useAsk(`readings ${node}`, api.readings(node), period);
  const rows = useMemo(() => {
    const peers = new Map<string, Peer>();
    for (const reading of answer?.readings ?? []) {
      if (reading.label === null || !COLUMNS.some(({ key }) => key === reading.metric)) continue;
      const of = peers.get(reading.label) ?? new Map<string, Reading>();
      peers.set(reading.label, of.set(reading.metric, reading));
    }
    return [...peers].map(([peer, of]): Row => ({ peer, of }));
  }, [answer]);
  if (answer === undefined) return <Waiting failure={failure} />;
  return <>
    <Trouble>{failure}</Trouble>
    {rows.length === 0 ? <Empty>It is connected with no other node.</Empty>
      : <Table label={`Connections of ${node}`} rows={rows} columns={COLUMNS} keyOf={({ peer }) => peer} sort={{ key: 'peer', down: false }} open={({ peer }) => go('node', peer)} />}
  </>;
};
