// SPDX-License-Identifier: Apache-2.0
// What the page asks the server. The types of the answers are those of the contract.
import type * as contract from './contract.js';

export type * from './contract.js';
export type Unit = contract.Metric['unit'];
export type Level = contract.Notification['severity'];
export type Page<Item> = { readonly items: readonly Item[]; readonly next: string | null; readonly total: number };
export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** What went wrong, in a sentence for people. A status of 0: there was no answer. */
export class Failure extends Error {
  constructor(readonly status: number, sentence: string) {
    super(sentence);
  }
}

const BASE = 'api/v1/';
const ANSWER_MS = 15_000;

/** `a=1&b=x,y`: a list is one parameter, and what is empty is not asked for. */
export const query = (params: Query): string => {
  const said = Object.entries(params).flatMap(([key, value]) => {
    const text = Array.isArray(value) ? value.map(encodeURIComponent).join(',') : encodeURIComponent(String(value ?? ''));
    return text === '' ? [] : [`${key}=${text}`];
  });
  return said.length === 0 ? '' : `?${said.join('&')}`;
};

const sentence = async (answer: Response): Promise<string> => {
  try {
    const { error } = await answer.json() as Partial<contract.Error>;
    if (typeof error === 'string' && error !== '') return error;
  } catch { /* a proxy, say, answered in its own way */ }
  return `The server answered with status ${answer.status}.`;
};

const asked = async (method: string, path: string, signal?: AbortSignal, body?: unknown): Promise<Response> => {
  const late = AbortSignal.timeout(ANSWER_MS);
  const init: RequestInit = { method, credentials: 'same-origin', cache: 'no-store', signal: late };
  if (body !== undefined) Object.assign(init, { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
  const control = new AbortController();
  const stop = (): void => control.abort();
  late.addEventListener('abort', stop);
  signal?.addEventListener('abort', stop);
  try {
    const answer = await fetch(BASE + path, { ...init, signal: control.signal });
    if (!answer.ok) throw new Failure(answer.status, await sentence(answer));
    return answer;
  } catch (error) {
    if (error instanceof Failure || signal?.aborted === true) throw error;
    throw new Failure(0, late.aborted ? 'The server did not answer within 15 s.' : 'The server cannot be reached.');
  } finally {
    signal?.removeEventListener('abort', stop);
  }
};

const got = async <Answer>(path: string, params: Query = {}, signal?: AbortSignal): Promise<Answer> =>
  await (await asked('GET', path + query(params), signal)).json() as Answer;

/** All pages of what an answer lists, a thousand at a time, up to `most`. */
const pages = async <Answer extends { next: string | null }>(path: string, params: Query, list: (answer: Answer) => readonly unknown[], most: number, signal?: AbortSignal): Promise<Answer[]> => {
  const answers: Answer[] = [];
  let cursor: string | undefined;
  let count = 0;
  do {
    const answer: Answer = await got(path, { ...params, limit: 1000, cursor }, signal);
    answers.push(answer);
    count += list(answer).length;
    cursor = answer.next ?? undefined;
  } while (cursor !== undefined && count < most);
  return answers;
};

const all = async <Item>(path: string, params: Query, most: number, signal?: AbortSignal): Promise<Item[]> =>
  (await pages<Page<Item>>(path, params, ({ items }) => items, most, signal)).flatMap(({ items }) => items);

const of = (node: string): string => `nodes/${encodeURIComponent(node)}`;

export type Ask<Answer> = (signal?: AbortSignal) => Promise<Answer>;

export const events = `${BASE}events`;
/** A stream of frames, see docs/traffic.md. */
export const traffic = (params: { trace: string | undefined; load: string | undefined }): string => `${BASE}traffic${query(params)}`;
export const cluster: Ask<contract.Cluster> = signal => got('cluster', {}, signal);
export const nodes: Ask<contract.Node[]> = signal => all('nodes', {}, 10_000, signal);
export const metrics: Ask<contract.Metric[]> = signal => all('metrics', {}, 5000, signal);
export const rules: Ask<contract.Rule[]> = signal => all('rules', {}, 1000, signal);
export const standing: Ask<contract.Alarm[]> = signal => all('alarms', { state: 'standing' }, 10_000, signal);
export const topology: Ask<contract.Topology> = signal => got('topology', {}, signal);
export const managers: Ask<contract.Managers> = signal => got('managers', {}, signal);
export const readings = (node: string): Ask<contract.Readings> => async signal => {
  const [first, ...more] = await pages<contract.Readings>(`${of(node)}/metrics`, {}, ({ readings }) => readings, 10_000, signal);
  return { ...first as contract.Readings, readings: [first, ...more].flatMap(page => page?.readings ?? []) };
};
export const series = (params: { window: contract.Window; metric: readonly string[]; node: readonly string[]; points?: number }): Ask<contract.SeriesList> =>
  signal => got('series', params, signal);
export const alarm = (id: number): Ask<contract.Alarm> => signal => got(`alarms/${id}`, {}, signal);
export const cleared = (params: Query): Ask<Page<contract.Alarm>> =>
  signal => got('alarms', { ...params, state: 'cleared' }, signal);
export const notifications = (params: Query): Ask<Page<contract.Notification>> => signal => got('notifications', params, signal);
export const processes = (node: string, sort: contract.Processes['sort']): Ask<contract.Processes> =>
  signal => got(`${of(node)}/processes`, { sort, limit: 50 }, signal);
export const process = (node: string, pid: string): Ask<contract.ProcessInfo> =>
  signal => got(`${of(node)}/processes/${encodeURIComponent(pid)}`, {}, signal);
export const tables = (node: string): Ask<contract.Tables> => signal => got(`${of(node)}/tables`, { limit: 100 }, signal);
export const supervision = (node: string, root?: string): Ask<contract.Supervision> => signal => got(`${of(node)}/supervision`, { root }, signal);

const answered = async <Answer>(method: string, path: string, body: unknown): Promise<Answer> =>
  await (await asked(method, path, undefined, body)).json() as Answer;

export const acknowledge = (id: number, who: string): Promise<contract.Alarm> => answered('POST', `alarms/${id}/acknowledge`, { who });
export const comment = (id: number, who: string, text: string): Promise<contract.Alarm> => answered('POST', `alarms/${id}/comments`, { who, text });
export const add = (node: string): Promise<contract.Node> => answered('POST', 'nodes', { node });
export const remove = async (node: string): Promise<void> => { await asked('DELETE', of(node)); };
export const enter = async (token: string): Promise<void> => { await asked('POST', 'session', undefined, { token }); };
export const leave = async (): Promise<void> => { await asked('DELETE', 'session'); };
