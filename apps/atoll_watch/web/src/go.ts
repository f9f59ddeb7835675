// SPDX-License-Identifier: Apache-2.0
// Goes to another view, or changes what stands in the address of this one.
import { href, parse, type Params, type View } from './route.js';

export const go = (view: View, of = '', params: Params = {}): void => { location.hash = href(view, of, params); };

/** Other parameters of the view that is shown. The way back does not lead through them. */
export const tune = (params: Params): void => {
  const { view, of, params: before } = parse(location.hash);
  history.replaceState(null, '', href(view, of, { ...before, ...params }));
  dispatchEvent(new HashChangeEvent('hashchange'));
};
