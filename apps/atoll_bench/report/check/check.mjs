// SPDX-License-Identifier: Apache-2.0
// Opens a report as a reader would, light and dark, on a wide and on a narrow
// screen, with no network, and fails if anything is not as it should be.
//
// usage: node check.mjs BROWSER DIR SHOTS
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const [browser, dir, shots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const url = pathToFileURL(resolve(dir, 'index.html')).href;
const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);

const listen = (page, where) => {
  page.on('pageerror', error => fault(where, error.message));
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) fault(where, message.text()); });
  page.on('dialog', dialog => { fault(where, `a text of the result ran: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', request => { if (!/^(file|data|blob):/.test(request.url())) fault(where, `asked for ${request.url()}`); });
};

const drawn = page => page.waitForFunction(() =>
  [...document.querySelectorAll('figure')].every(figure => figure.querySelector('.drawing svg path')));

const looks = async (chrome, scheme, width) => {
  const where = `${scheme}, ${width} px`;
  // The policy of the page would keep the checker out as well: `policy' tries it.
  const context = await chrome.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, offline: true, bypassCSP: true });
  const page = await context.newPage();
  listen(page, where);
  await page.goto(url);
  await drawn(page);
  await page.screenshot({ path: join(shots, `${scheme}-${width}.png`), fullPage: true });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (over > 0) fault(where, `the page is ${over} px too wide`);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, help, nodes } of violations) fault(where, `axe ${id}: ${help} (${nodes.length}), ${nodes[0].html.slice(0, 200)}`);
  await context.close();
};

// By keyboard alone, under the page's own policy.
const hands = async chrome => {
  const where = 'keyboard';
  const context = await chrome.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'light', offline: true });
  const page = await context.newPage();
  listen(page, where);
  await page.goto(url);
  await drawn(page);
  const pressed = async (locator, key) => { await locator.focus(); await page.keyboard.press(key); };
  const curves = () => page.locator('figure .drawing').first().locator('path').count();

  const before = await curves();
  const key = page.locator('.key').first();
  // Where nothing was measured there is none.
  if (await key.count() > 0) {
    await pressed(key, 'Enter');
    if (await key.getAttribute('aria-pressed') !== 'false') fault(where, 'a series is not taken away');
    if (await curves() >= before) fault(where, 'a series that was taken away is still drawn');
    await pressed(key, 'Enter');
  }

  await pressed(page.locator('#look'), 'Enter');
  if (await page.locator('html').getAttribute('data-look') !== 'dark') fault(where, 'it does not become dark');
  await page.reload();
  await drawn(page);
  if (await page.locator('html').getAttribute('data-look') !== 'dark') fault(where, 'it forgets that it is dark');

  for (const select of await page.locator('select').all()) {
    await pressed(select, 'Home');
    await page.waitForTimeout(0);
    await drawn(page);
  }
  for (const box of await page.locator('.switches input').all()) await pressed(box, 'Space');
  for (const summary of await page.locator('summary').all()) await pressed(summary, 'Enter');

  const levels = await page.evaluate(() => [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => Number(h.tagName[1])));
  levels.forEach((level, i) => { if (level > (levels[i - 1] ?? 0) + 1) fault(where, `heading ${i + 1} leaves out a level`); });
  await context.close();
};

// Every picture beside the page is one that a browser takes.
const pictures = async chrome => {
  const context = await chrome.newContext({ viewport: { width: 1000, height: 900 }, offline: true });
  const page = await context.newPage();
  await page.goto(url);
  const hrefs = await page.evaluate(() => [...document.querySelectorAll('a[href$=".svg"]')].map(a => a.href));
  if (hrefs.length === 0) fault('pictures', 'there are none');
  for (const href of hrefs) {
    const answer = await page.goto(href);
    if (await page.locator('parsererror').count() > 0 || answer?.status() === 404) fault(href, 'is no picture');
  }
  await context.close();
};

const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] });
try {
  for (const scheme of ['light', 'dark']) for (const width of [1280, 400]) await looks(chrome, scheme, width);
  await hands(chrome);
  await pictures(chrome);
} finally {
  await chrome.close();
}
for (const line of faults) console.error(line);
console.log(`the report in a browser: ${faults.length === 0 ? 'as it should be' : `${faults.length} faults`}`);
process.exit(faults.length === 0 ? 0 : 1);
