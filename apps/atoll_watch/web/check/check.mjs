// SPDX-License-Identifier: Apache-2.0
// Opens the page as people would, before a made-up cluster with hostile names: each view,
// light and dark, wide and narrow, by keyboard, while things happen, while the server is
// away, and with 2,000 nodes. Fails if anything is not as it should be.
//
// usage: node check.mjs BROWSER PAGE CONTRACT SHOTS [LINK]     LINK: of a watch that runs, which is opened instead
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { Cluster, HOSTILE, LONG, RTL, SCRIPT } from './cluster.mjs';
import { frames, LOST } from './flow.mjs';
import { Server, TOKEN, unlikeAnswer } from './server.mjs';

const [browser, dir, contractFile, shots, link] = process.argv.slice(2);
const contract = JSON.parse(readFileSync(contractFile, 'utf8'));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const faults = [];
/** What a step with 2,000 nodes may take of the processor, and one task of it: so long a page does not answer. */
const WORK_MS = 600;
const TASK_MS = 200;
const fault = (where, what) => { faults.push(`${where}: ${what}`); };
const is = (where, what, good) => { if (!good) fault(where, what); };

const serve = async count => new Server(dir, contract, new Cluster(count, Date.now())).listen();

/** What is written on a picture says what it is, and covers nothing that is written there. */
const reads = () => {
  const fill = CanvasRenderingContext2D.prototype.fillText;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  globalThis.written = new WeakMap();
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    globalThis.written.set(this.canvas, []);
    return clear.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    if (/NaN|undefined/.test(text)) console.error(`"${text}" is written on a picture`);
    const { width } = this.measureText(text);
    const left = this.textAlign === 'center' ? x - width / 2 : this.textAlign === 'right' ? x - width : x;
    globalThis.written.get(this.canvas)?.push({ text, left, right: left + width, top: y - 8, bottom: y });
    return fill.call(this, text, x, y, ...rest);
  };
};
const covered = page => page.evaluate(() => [...document.querySelectorAll('canvas.flowing')].flatMap(canvas => {
  const texts = (globalThis.written.get(canvas) ?? []).filter(({ text }) => text !== '');
  return texts.flatMap((a, i) => [
    ...a.left < 0 || a.right > canvas.clientWidth || a.top < 0 || a.bottom > canvas.clientHeight ? [`${a.text} is cut`] : [],
    ...texts.slice(i + 1).filter(b => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(b => `${b.text} covers ${a.text}`)
  ]);
}));

/** A page that says everything that it should not do. */
const opened = async (chrome, server, where, options, path = '') => {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', ...options });
  const page = await context.newPage();
  await page.addInitScript(reads);
  page.setDefaultTimeout(60_000);
  const allowed = { broken: false };
  page.on('pageerror', error => fault(where, error.message));
  page.on('console', message => { if (['error', 'warning'].includes(message.type()) && !allowed.broken) fault(where, message.text()); });
  page.on('dialog', dialog => { fault(where, `a text of the cluster ran: ${dialog.message()}`); void dialog.dismiss(); });
  page.on('request', request => { if (!request.url().startsWith(server.url) && !request.url().startsWith('data:')) fault(where, `asked for ${request.url()}`); });
  await page.goto(`${server.url}#token=${TOKEN}`);
  await page.getByText('live', { exact: true }).waitFor();
  if (path !== '') await page.evaluate(to => { location.hash = to; }, path);
  return { page, allowed, close: () => context.close() };
};

const UP = 'shop1@10.0.0.1';
const tab = name => `#/node/${UP}?tab=${name}`;

// Of each view: its name, its address, and a text that must stand in it.
const VIEWS = [
  ['tiles', '#/', 'shop2'],
  ['table', '#/?as=table', LONG],
  ['groups', '#/?as=groups', 'group 1'],
  ['hostile', `#/?q=${encodeURIComponent('host')}`, `'${SCRIPT}`],
  ['node', `#/node/${UP}`, 'memory_processes'],
  ['node-hostile', `#/node/${encodeURIComponent(LONG)}`, 'memory_total'],
  ['node-connections', tab('connections'), 'shop2@10.0.0.2'],
  ['processes', `${tab('processes')}&pid=${encodeURIComponent('<0.100.0>')}`, `${SCRIPT}:f/1`],
  ['supervision', tab('supervision'), `${SCRIPT}_worker_0`],
  ['tables', tab('tables'), SCRIPT],
  ['node-alarms', '#/node/shop8@10.0.0.8?tab=alarms', 'node_down'],
  ['metrics', `#/metrics?m=utilisation,memory_total,${encodeURIComponent(`user_${SCRIPT}`)}&n=${UP},shop2@10.0.0.2,shop3@10.0.0.3&w=hour`, `a metric of a user's: ${SCRIPT}`],
  ['alarms', '#/alarms', 'node_down'],
  ['alarms-several', '#/alarms?q=partition', ' and 8 more'],
  ['alarm', '#/alarms/1', `8 pairs of 9 nodes are not connected, ${SCRIPT} among them`],
  ['history', '#/alarms?show=history', 'cleared'],
  ['rules', '#/alarms?show=rules', '10,000'],
  ['notifications', '#/notifications', `A report with ${SCRIPT} in it`],
  ['topology', '#/topology', 'Circuits'],
  ['connections', '#/connections', 'overlay'],
  ['traffic', '#/traffic?trace=yes', 'Busiest in the last second'],
  ['traffic-queues', `#/traffic?as=queues&node=${UP}`, '24 schedulers'],
  ['traffic-mailboxes', `#/traffic?as=mailboxes&node=${UP}`, 'orders']
];

const seen = async (page, text) => page.waitForFunction(text => document.querySelector('main')?.innerText.includes(text)
  || [...document.querySelectorAll('main text, main bdi')].some(({ textContent }) => textContent.includes(text)), text);

const looks = async (chrome, server, scheme, width) => {
  const at = `${scheme}, ${width} px`;
  // The policy of the page would keep the checker out as well: the other checks try it.
  const { page, close } = await opened(chrome, server, at, { viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: true });
  await page.evaluate(axe);
  for (const [name, path, text] of VIEWS) {
    const where = `${name}, ${at}`;
    await page.evaluate(to => { location.hash = to; }, path);
    await seen(page, text).catch(() => fault(where, `has no ${text}`));
    if (name === 'metrics') await page.locator('.chart canvas').nth(2).waitFor();
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
    await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
    for (const said of await covered(page)) fault(where, said);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    is(where, `the page is ${over} px too wide`, over <= 0);
    is(where, 'a text of the cluster became an element', await page.locator('main script, main img').count() === 0);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    for (const { id, impact, help, nodes } of violations) fault(where, `axe ${id} (${impact}): ${help} (${nodes.length}), ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary?.replace(/\s+/g, ' ').slice(0, 200)}`);
    const levels = await page.evaluate(() => [...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1])));
    levels.forEach((level, i) => is(where, `heading ${i + 1} leaves out a level`, level <= (levels[i - 1] ?? 0) + 1));
  }
  await close();
};

/** Things happen, and the page says so by itself. */
const happens = async (chrome, server) => {
  const where = 'live';
  const { page, allowed, close } = await opened(chrome, server, where, {});
  const { cluster } = server;
  await page.evaluate(() => { globalThis.same = true; });
  const tile = page.locator(`a[href="#/node/${UP}"]`);
  await tile.getByText('up', { exact: true }).waitFor();
  Object.assign(cluster.nodes.get(UP), cluster.node(UP, 'down', Date.now()));
  const alarm = cluster.raise(UP, 'node_down', null, 'critical', Date.now());
  server.tellAlarm(alarm);
  await tile.getByText('down', { exact: true }).waitFor();
  await tile.getByText('worst critical').or(tile.getByText('1 alarm, critical')).waitFor();
  is(where, 'the title does not count the alarms', /^\(\d+\)/.test(await page.title()));

  // What somebody says of an alarm stands there, as it was said.
  await page.evaluate(id => { location.hash = `#/alarms/${id}`; }, alarm.id);
  await page.getByLabel('Your name').fill(`Ada ${SCRIPT}`);
  await page.getByRole('button', { name: 'Acknowledge' }).click();
  await page.locator('.one').getByText('acknowledged').waitFor();
  is(where, 'an alarm can be acknowledged twice', await page.getByRole('button', { name: 'Acknowledge' }).count() === 0);
  await page.getByLabel('Comment', { exact: true }).fill(`Its disk is full ${SCRIPT}`);
  await page.getByRole('button', { name: 'Comment', exact: true }).click();
  await page.locator('.comments').getByText(`Its disk is full ${SCRIPT}`).waitFor();
  Object.assign(cluster.nodes.get(UP), cluster.node(UP, 'up', Date.now()));
  server.tellAlarm(cluster.clear(alarm.id, Date.now()));
  await page.locator('.one').getByText(', cleared').waitFor();

  await page.evaluate(() => { location.hash = '#/notifications'; });
  await page.locator('main table').waitFor();
  server.tell('notification', cluster.notify('restarted', 'warning', UP, 'came back as another life', Date.now()));
  await page.locator('tbody tr').first().getByText('came back as another life').waitFor();
  await page.getByRole('searchbox').fill('nothing is like this');
  await page.getByText('Nothing of this kind has happened.').waitFor();
  await page.getByRole('searchbox').fill('A report');
  await page.getByText('A report with').waitFor();

  await page.evaluate(() => { location.hash = '#/'; });
  await page.getByText('Watch another node').click();
  // What is refused stands in the console too.
  allowed.broken = true;
  await page.getByLabel('Name, as in').fill('nonsense');
  await page.getByRole('button', { name: 'Watch it' }).click();
  await page.getByText('nonsense is no name of a node.').waitFor();
  allowed.broken = false;
  await page.getByLabel('Name, as in').fill('new@host');
  await page.getByRole('button', { name: 'Watch it' }).click();
  await page.locator('a[href="#/node/new@host"]').click();
  await page.getByText('added by hand').waitFor();
  await page.getByText('Watch it no more').first().click();
  await page.getByRole('button', { name: 'Watch it no more' }).click();
  await page.locator('.tiles').waitFor();
  await page.locator('a[href="#/node/new@host"]').waitFor({ state: 'detached' });
  is(where, 'the page was loaded again', await page.evaluate(() => globalThis.same === true));
  await close();
};

/** The server is away for a while, and back. */
const away = async (chrome, server) => {
  const where = 'away';
  const { page, allowed, close } = await opened(chrome, server, where, {});
  allowed.broken = true;
  server.refuses = true;
  server.cut();
  await page.getByText('Connection lost since').waitFor();
  is(where, 'it does not say why', await page.getByText('The server cannot be reached.').count() === 1);
  is(where, 'what was known is gone', await page.locator('.tile').count() > 0);
  await page.screenshot({ path: join(shots, 'lost.png') });
  const { node } = server.cluster.raise('shop2@10.0.0.2', 'memory', null, 'major', Date.now());
  server.refuses = false;
  await page.getByText('live', { exact: true }).waitFor();
  await page.locator(`a[href="#/node/${node}"]`).getByText('major').waitFor();
  await close();
};

/** Without the token there is nothing. */
const locked = async (chrome, server) => {
  const where = 'locked';
  const context = await chrome.newContext({ viewport: { width: 360, height: 700 } });
  const page = await context.newPage();
  await page.goto(`${server.url}#token=wrong`);
  await page.getByText('A token is needed').waitFor();
  is(where, 'the token stands in the address', !page.url().includes('token'));
  await page.screenshot({ path: join(shots, 'locked.png') });
  await page.getByLabel('Token').fill('wrong too');
  await page.getByRole('button', { name: 'Enter' }).click();
  await page.getByText('The token is wrong.').waitFor();
  await page.getByLabel('Token').fill(TOKEN);
  await page.getByRole('button', { name: 'Enter' }).click();
  await page.locator('.tile').first().waitFor();
  await context.close();
};

/** By keyboard alone, under the page's own policy. */
const hands = async (chrome, server) => {
  const where = 'keyboard';
  const { page, close } = await opened(chrome, server, where, {});
  const focused = expression => page.evaluate(`(active => ${expression})(document.activeElement)`);
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  await page.locator('.tile').first().waitFor();
  await press('/');
  is(where, '/ does not lead to the search', await focused("active.type === 'search'"));
  await page.keyboard.type('shop1@');
  await page.getByText('1 node of').waitFor();
  is(where, 'what is looked for does not stand in the address', page.url().includes('q=shop1@'));
  await press('Control+a', 'Delete');
  await page.getByText('1 node of').waitFor({ state: 'detached' });

  await page.locator('.tile a').first().focus();
  const across = await page.evaluate(() => getComputedStyle(document.querySelector('.tiles')).gridTemplateColumns.split(' ').length);
  await press('ArrowRight', 'ArrowDown');
  is(where, 'arrows do not walk over the tiles', await focused('active.dataset.at') === String(across + 1));
  const outline = await focused("getComputedStyle(active).outlineStyle !== 'none'");
  is(where, 'the focus cannot be seen', outline);
  await press('End');
  is(where, 'End does not lead to the last tile', Number(await focused('active.dataset.at')) === server.cluster.nodes.size - 1);
  await press('Tab', 'Tab');
  is(where, 'Tab goes through every tile', await focused("active.closest('.tiles') === null"));

  await page.evaluate(() => { location.hash = '#/?as=table'; });
  await page.locator('tbody tr[tabindex="0"]').focus();
  await press('PageDown', 'ArrowDown', 'ArrowUp');
  is(where, 'arrows do not walk over rows', await focused("active.tagName === 'TR' && active.dataset.at === '10'"));
  await press('Enter');
  await page.locator('.facts').waitFor();
  is(where, 'the focus is lost with the view', await focused("active.tagName === 'H2'"));

  await page.evaluate(to => { location.hash = to; }, tab('supervision'));
  await page.locator('[role=treeitem][tabindex="0"]').focus();
  const count = await page.locator('[role=treeitem]').count();
  await press('ArrowLeft');
  is(where, 'the tree does not close', await page.locator('[role=treeitem]').count() < count);
  await press('ArrowRight', 'ArrowRight');
  is(where, 'the tree is not walked', await focused("active.dataset.path === '0.0'"));

  await page.evaluate(() => { location.hash = '#/metrics'; });
  await page.locator('.chart').first().waitFor();
  is(where, 'the busiest nodes do not stand in the address', /n=.*@/.test(page.url()));
  const curves = await page.locator('.chart').count();
  await page.locator('[role=listbox]').first().locator('[tabindex="0"]').focus();
  await press('Space');
  await page.locator('.chart').nth(curves).waitFor();

  await page.evaluate(() => { location.hash = '#/?as=groups'; });
  // The groups are told after the nodes, and all stand anew then.
  await seen(page, 'group 1');
  await page.locator('.dot[tabindex="0"]').focus();
  await press('ArrowRight');
  is(where, 'arrows do not walk over the groups', await focused("active.dataset.dot === '1'"));
  is(where, 'the connections of a node do not show', (await page.locator('.lines').getAttribute('d')).length > 10);

  await page.locator('.look').focus();
  await press('Enter');
  is(where, 'it does not become dark', await page.locator('html').getAttribute('data-look') === 'dark');
  await page.reload();
  is(where, 'it forgets that it is dark', await page.locator('html').getAttribute('data-look') === 'dark');
  await close();
};

/** The processor time of the longest task of any page's main thread. */
const longest = events => {
  const mains = new Set(events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = events.filter(({ ph, pid, tid, tdur }) => ph === 'X' && tdur !== undefined && mains.has(`${pid} ${tid}`));
  return tasks.length === 0 ? NaN : Math.round(Math.max(...tasks.map(({ tdur }) => tdur)) / 1000);
};

/** With 2,000 nodes: what is drawn stays small, and takes little of the processor, however busy that is with others. */
const many = async chrome => {
  const where = '2,000 nodes';
  const server = await serve(2000);
  const { page, close } = await opened(chrome, server, where, {});
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
  };
  const stage = async (name, act, most = 3000) => {
    await chrome.startTracing(page, { categories: ['toplevel', '__metadata'] });
    const before = await worked();
    await act();
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 60))));
    const ms = Math.round(await worked() - before);
    const task = longest(JSON.parse((await chrome.stopTracing()).toString()).traceEvents);
    const elements = await page.evaluate(() => document.querySelectorAll('*').length);
    console.log(`  ${where}, ${name}: ${ms} ms of the processor, the longest task ${task}, ${elements} elements`);
    is(where, `${name}: ${elements} elements`, elements <= most);
    is(where, `${name}: ${ms} ms of the processor`, ms <= WORK_MS);
    is(where, `${name}: a task of ${task} ms`, task <= TASK_MS);
  };
  const go = path => page.evaluate(to => { location.hash = to; }, path);
  await page.locator('.tile').first().waitFor();
  const looked = async () => {
    server.tell('nodes', [...server.cluster.nodes.values()]);
    await page.waitForTimeout(300);
  };
  await stage('all looked at, as tiles', looked);
  await stage('scrolled to the end', async () => {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await page.locator('.tile a[data-at="1999"]').waitFor();
  });
  await stage('searched', async () => {
    await page.getByRole('searchbox').fill('shop77@');
    await page.getByText('1 node of').waitFor();
  });
  await stage('as a table', async () => { await go('#/?as=table'); await page.locator('tbody tr').first().waitFor(); });
  await stage('by groups', async () => { await go('#/?as=groups'); await page.locator('.dot').nth(1900).waitFor(); }, 12_000);
  await stage('all looked at, by groups', looked, 12_000);
  await page.screenshot({ path: join(shots, 'many-groups.png'), fullPage: true });
  await stage('connections', async () => { await go('#/connections'); await page.locator('tbody tr').first().waitFor(); });
  await stage('metrics', async () => { await go('#/metrics'); await page.locator('.chart').first().waitFor(); });
  await close();
  server.close();
};

/** The page before a watch that runs: its own policy, its own answers, which are held to the contract. */
const real = async chrome => {
  const where = 'a watch that runs';
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on('pageerror', error => fault(where, error.message));
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) fault(where, message.text()); });
  page.on('dialog', dialog => { fault(where, `a text of the cluster ran: ${dialog.message()}`); void dialog.dismiss(); });
  page.on('response', async response => {
    if (!/json/.test(response.headers()['content-type'] ?? '')) return;
    const data = await response.json().catch(() => undefined);
    if (data !== undefined) faults.push(...unlikeAnswer(contract, response.request().method(), new URL(response.url()).pathname, response.status(), data));
  });
  await page.goto(link);
  await page.getByText('live', { exact: true }).waitFor();
  await page.locator('.tile').first().getByText('load').waitFor();
  const node = await page.locator('.tile a').first().evaluate(tile => tile.querySelector('.tile-name').title);
  const of = `#/node/${encodeURIComponent(node)}`;
  const views = [
    ['table', '#/?as=table', 'tbody tr'], ['groups', '#/?as=groups', '.dot'], ['node', of, 'tbody tr'], ['node-connections', `${of}?tab=connections`, 'tbody tr'],
    ['processes', `${of}?tab=processes`, 'tbody tr'], ['process', `${of}?tab=processes&pid=kernel_sup`, '.stack li'], ['supervision', `${of}?tab=supervision`, '[role=treeitem]'],
    ['tables', `${of}?tab=tables`, 'tbody tr'], ['metrics', '#/metrics', '.chart'], ['alarms', '#/alarms', 'main .controls'], ['rules', '#/alarms?show=rules', 'tbody tr'],
    ['notifications', '#/notifications', 'tbody tr'], ['topology', '#/topology', '.dot'], ['connections', '#/connections', 'tbody tr']
  ];
  for (const [name, path, has] of views) {
    await page.evaluate(to => { location.hash = to; }, path);
    await page.locator(has).first().waitFor().catch(() => fault(where, `${name} has no ${has}`));
    for (const trouble of await page.locator('.trouble').allTextContents()) fault(where, `${name}: ${trouble}`);
    await page.screenshot({ path: join(shots, `real-${name}.png`), fullPage: true });
  }
  await context.close();
};

/** What flows, live: five frames a second, which can be held while others come. */
const flows = async (chrome, server) => {
  const where = 'traffic';
  const { page, close } = await opened(chrome, server, where, { viewport: { width: 1280, height: 900 } }, '#/traffic');
  const focused = expression => page.evaluate(`(active => ${expression})(document.activeElement)`);
  const slider = page.getByLabel('Time', { exact: true });
  const end = async () => Number(await slider.getAttribute('max'));
  const at = async () => Number(await slider.inputValue());
  await page.getByText('arcs of the last second').waitFor();
  const [before, began] = [await end(), Date.now()];
  await page.waitForFunction(least => Number(document.querySelector('.timeline input').max) >= least, before + 4000);
  const period = 200 * (Date.now() - began) / (await end() - before);
  is(where, `a frame comes each ${period.toFixed(0)} ms`, period > 150 && period < 300);
  // By keyboard: held, a frame back, and on again.
  await page.getByRole('button', { name: 'Stop' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Play' }).waitFor();
  const held = await at();
  await page.waitForFunction(least => Number(document.querySelector('.timeline input').max) >= least, held + 1500);
  is(where, 'the picture does not hold', await at() === held);
  await page.keyboard.press('Tab');
  is(where, 'Tab does not lead to the time', await focused("active.type === 'range'"));
  await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(time => Number(document.querySelector('.timeline input').value) === time, held - 200);
  await page.keyboard.press('Tab');
  is(where, 'Tab does not lead to now', await focused("active.textContent === 'Now'"));
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Now' }).waitFor({ state: 'detached' });
  is(where, 'it is not now again', await at() > held + 1000);
  const lost = [...server.cluster.nodes.keys()].sort()[LOST];
  const alone = await opened(chrome, server, where, {}, `#/traffic?as=queues&node=${encodeURIComponent(lost)}`);
  await alone.page.getByText(`${lost} is down.`).waitFor();
  await alone.close();
  // Another page sees the same, each has a stream as long as it shows it, and with the last one there is none.
  const other = await opened(chrome, server, where, {}, '#/traffic?by=bytes');
  const said = async page => /^48 nodes, \d+ groups/.exec(await page.locator('.flowing-said').innerText())?.[0];
  await other.page.getByText('arcs of the last second').waitFor();
  is(where, 'two pages do not see the same', await said(page) !== undefined && await said(page) === await said(other.page));
  const streams = async count => { for (let left = 100; left > 0 && server.flows.size !== count; left -= 1) await page.waitForTimeout(50); return server.flows.size === count; };
  is(where, `${server.flows.size} streams of two pages`, await streams(2));
  await page.evaluate(() => { location.hash = '#/'; });
  is(where, 'a page that shows something else goes on with its stream', await streams(1));
  await other.close();
  is(where, 'the stream of a page that is closed goes on', await streams(0));
  await close();
};

const PLAYED_MS = 4000;
/** Of the page's processor time, for each picture of 1,000 nodes and 5,000 arcs: 30 of them in a second. */
const PICTURE_MS = 33;

/** A recording is played without a cluster, wound back, saved and played again; how many pictures a second that makes. */
const recorded = async (chrome, server) => {
  const where = 'recording';
  const { page, allowed, close } = await opened(chrome, server, where, { viewport: { width: 1280, height: 900 } }, '#/traffic');
  await page.getByText('arcs of the last second').waitFor();
  const names = Array.from({ length: 1000 }, (_, i) => `reef${i}@10.0.${Math.floor(i / 250)}.${i % 250}`);
  const text = frames(names, 40, 5000, 120).map(line => JSON.stringify(line)).join('\n');
  // What is lost is said in the console, too.
  allowed.broken = true;
  server.refuses = true;
  server.cut();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
  const drawn = () => page.locator('canvas.flowing').evaluate(canvas => Number(canvas.dataset.drawn));
  const open = (name, content) => page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(content) });
  await open('many.flow', text);
  await page.getByText('1,000 nodes, 25 groups').waitFor();
  // First the nodes still find their places.
  for (const what of ['while nodes move', 'while they stand']) {
    const [first, work, began] = [await drawn(), await worked(), Date.now()];
    await page.waitForTimeout(PLAYED_MS);
    const pictures = await drawn() - first;
    const [each, rate] = [(await worked() - work) / pictures, 1000 * pictures / (Date.now() - began)];
    console.log(`  1,000 nodes and 5,000 arcs, ${what}: ${rate.toFixed(1)} pictures a second, ${each.toFixed(1)} ms of the processor each`);
    is(where, `${what}: ${each.toFixed(1)} ms of the processor for a picture`, each <= PICTURE_MS);
    await page.screenshot({ path: join(shots, `traffic-many-${what.split(' ').at(-1)}.png`) });
  }
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByLabel('Time', { exact: true }).fill('2000');
  await page.getByText('2.0 s').waitFor();
  is(where, 'a film that was wound back does not stand', await page.getByRole('button', { name: 'Play' }).count() === 1);
  await page.getByRole('button', { name: 'Play' }).click();
  await page.waitForFunction(() => Number(document.querySelector('.timeline input').value) > 3000);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save' }).click()]);
  const saved = readFileSync(await download.path(), 'utf8');
  is(where, `${saved.trim().split('\n').length} frames were saved`, saved.trim().split('\n').length === 120);
  await open('no.flow', '{"v":1,"t":0}\nno\n');
  await page.getByText('line 2: it is no JSON').waitFor();
  await open('again.flow', saved);
  await page.getByText('from again.flow').waitFor();
  await page.getByText('1,000 nodes, 25 groups').waitFor();
  await page.waitForFunction(() => Number(document.querySelector('.timeline input').value) > 1000);
  server.refuses = false;
  await close();
};

const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] });
const server = await serve(48);
try {
  is('cluster', 'has no hostile names', HOSTILE.includes(RTL));
  const only = process.env.ONLY?.split(',');
  const parts = {
    looks: async () => { for (const scheme of process.env.LOOK?.split(',') ?? ['light', 'dark']) for (const width of [1600, 360]) await looks(chrome, server, scheme, width); },
    locked: () => locked(chrome, server), hands: () => hands(chrome, server), away: () => away(chrome, server), happens: () => happens(chrome, server), flows: () => flows(chrome, server), recorded: () => recorded(chrome, server), many: () => many(chrome)
  };
  for (const [name, part] of Object.entries(link === undefined ? parts : { real: () => real(chrome) })) {
    if (only?.includes(name) === false) continue;
    await part().catch(error => fault(name, String(error.stack ?? error).split('\n').slice(0, 8).join(' | ')));
  }
} finally {
  server.close();
  await chrome.close();
}
faults.push(...new Set(server.faults));
for (const line of faults) console.error(line);
console.log(`the page of the watch room in a browser: ${faults.length === 0 ? 'as it should be' : `${faults.length} faults`}`);
process.exit(faults.length === 0 ? 0 : 1);
