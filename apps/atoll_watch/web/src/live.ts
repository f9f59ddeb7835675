// SPDX-License-Identifier: Apache-2.0
// Keeps the state of the page that of the cluster: the stream of events, the snapshot at its
// beginning, and coming back after it was lost. What is decided, state.ts decides.
import * as api from './api.js';
import { delay } from './backoff.js';
import { initial, stepped, type Event, type Input, type State } from './state.js';

/** Inputs are taken together, so that a burst is drawn once. */
const TOGETHER_MS = 100;
/** A stream that says nothing for so many periods, and for so long, is lost. */
const SILENT_PERIODS = 4;
const SILENT_MS = 20_000;

export class Live {
  state: State = initial;
  private readonly readers = new Set<() => void>();
  private inputs: Input[] = [];
  private taking: ReturnType<typeof setTimeout> | undefined;
  private stream: EventSource | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;

  subscribe(reader: () => void): () => void {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  }

  /** Now, by the clock of the watch. */
  now(): number {
    return Date.now() + this.state.skew;
  }

  put(input: Input): void {
    this.inputs.push(input);
    this.taking ??= setTimeout(() => this.take(), TOGETHER_MS);
  }

  private take(): void {
    this.taking = undefined;
    const inputs = this.inputs;
    this.inputs = [];
    this.state = stepped(this.state, inputs);
    this.readers.forEach(tell => tell());
  }

  /** Begins, or begins again. */
  open(): void {
    this.close();
    const stream = this.stream = new EventSource(api.events);
    stream.onopen = () => { this.put({ event: 'opened' }); void this.snapshot(stream); };
    stream.onerror = () => void this.lost(stream, 'The stream of events has ended.');
    const hear = (event: Event['event']): void => stream.addEventListener(event, message => {
      this.heard(stream);
      this.put({ event, data: JSON.parse((message as MessageEvent<string>).data), now: Date.now() } as Event);
    });
    (['cluster', 'nodes', 'gone', 'alarm', 'notification'] as const).forEach(hear);
    stream.addEventListener('lost', () => { this.put({ event: 'opened' }); void this.snapshot(stream); });
    this.heard(stream);
  }

  private close(): void {
    this.stream?.close();
    this.stream = undefined;
    clearTimeout(this.watchdog);
    clearTimeout(this.retry);
  }

  private heard(stream: EventSource): void {
    clearTimeout(this.watchdog);
    const ms = Math.max(SILENT_MS, SILENT_PERIODS * (this.state.cluster?.period_ms ?? 0));
    this.watchdog = setTimeout(() => void this.lost(stream, 'The server says nothing.'), ms);
  }

  private async snapshot(stream: EventSource): Promise<void> {
    try {
      const [cluster, nodes, alarms] = await Promise.all([api.cluster(), api.nodes(), api.standing()]);
      if (stream !== this.stream) return;
      this.failures = 0;
      this.put({ event: 'snapshot', data: { cluster, nodes, alarms }, now: Date.now() });
    } catch (error) {
      await this.lost(stream, error instanceof Error ? error.message : String(error));
    }
  }

  /** A stream does not say why it failed: a question does. */
  private async lost(stream: EventSource, why: string): Promise<void> {
    if (stream !== this.stream) return;
    this.close();
    const failure = await api.cluster().then(() => undefined, (error: unknown) => error);
    if (this.stream !== undefined) return;
    if (failure instanceof api.Failure && failure.status === 401) return this.put({ event: 'locked' });
    this.failures += 1;
    this.put({ event: 'lost', why: failure instanceof Error ? failure.message : why, now: Date.now() });
    this.retry = setTimeout(() => this.open(), delay(this.failures, Math.random()));
  }

  /** What waits for its next try does not wait any more: the network is back, say. */
  hurry(): void {
    if (this.state.link.is === 'lost' && this.stream === undefined) this.open();
  }
}

export const live = new Live();
