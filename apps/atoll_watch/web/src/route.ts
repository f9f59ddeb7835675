// SPDX-License-Identifier: Apache-2.0
// What is shown stands in the address, after the `#`, so that any view can be linked:
// `#/node/shop@host?tab=processes`. The rest of a view's state is lost with it.

export const VIEWS = ['overview', 'node', 'metrics', 'alarms', 'notifications', 'topology', 'connections', 'traffic'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  view: View;
  /** Of what, where a view shows one of many; empty elsewhere. */
  of: string;
  params: Params;
}

/** A parameter that is not there is empty, and one that is empty is not written. */
export type Params = Readonly<Record<string, string>>;

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** What an address says; the overview where it says nothing that is known. */
export const parse = (hash: string): Route => {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s);
  const [name = '', of = ''] = path.split(/\/(.*)/s);
  const view = VIEWS.find(each => each === name) ?? 'overview';
  return { view, of: decoded(of), params: Object.fromEntries(new URLSearchParams(query)) };
};

export const href = (view: View, of = '', params: Params = {}): string => {
  const said = Object.entries(params).filter(([, text]) => text !== '');
  // Names of nodes are easier to read as they are.
  const query = said.map(([key, text]) => `${key}=${encodeURIComponent(text).replace(/%40/g, '@').replace(/%2C/gi, ',').replace(/%3A/gi, ':')}`).join('&');
  const path = `#/${view === 'overview' ? '' : view}${of === '' ? '' : `/${encodeURIComponent(of).replace(/%40/g, '@')}`}`;
  return query === '' ? path : `${path}?${query}`;
};

/** A list in one parameter. */
export const list = (text: string | undefined): string[] => text === undefined || text === '' ? [] : text.split(',').map(decoded);
export const joined = (each: readonly string[]): string => each.map(one => one.replace(/[%,]/g, encodeURIComponent)).join(',');
