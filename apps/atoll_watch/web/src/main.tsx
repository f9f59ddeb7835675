// SPDX-License-Identifier: Apache-2.0
// The page of the watch room.
import { render } from 'preact';
import '../style.css';
import * as api from './api.js';
import { live } from './live.js';
import * as look from './look.js';
import { App } from './view/app.js';

/** The token of a link goes to the server once, and out of the address at once. */
const token = /^#token=(.+)$/.exec(location.hash)?.[1];
if (token !== undefined) history.replaceState(null, '', '#/');

look.begin();
render(<App />, document.getElementById('page') as HTMLElement);

// A token that is wrong is said by the first answer after it.
if (token !== undefined) await api.enter(decodeURIComponent(token)).catch(() => undefined);
live.open();
addEventListener('online', () => live.hurry());
document.addEventListener('visibilitychange', () => { if (!document.hidden) live.hurry(); });
