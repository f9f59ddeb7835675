// SPDX-License-Identifier: Apache-2.0
// Brings the page to life: draws the charts into their places, and lets the reader
// hide a series, change an axis, choose a value and switch between light and dark.
import { init } from './library.js';
import { DARK, LIGHT, swatch } from './look.js';
import { notes, panelOption, panelsIn, viewOf } from './options.js';

const charts = JSON.parse(document.getElementById('charts').textContent);
const dark = matchMedia('(prefers-color-scheme: dark)');
const root = document.documentElement;
const figures = [];
let printing = false;

// A page from a file may have no storage.
const remembered = () => { try { return localStorage.getItem('atoll-look'); } catch { return null; } };
const remember = look => { try { localStorage.setItem('atoll-look', look); } catch { /* until the page is closed */ } };

const look = () => {
  if (printing) return LIGHT;
  const name = root.dataset.look ?? (dark.matches ? 'dark' : 'light');
  return name === 'dark' ? DARK : LIGHT;
};

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

// The markup is our own: numbers and colours, nothing from a file.
const swatchElement = (series, marked) => {
  const box = element('span', { class: 'swatch', 'aria-hidden': 'true' });
  box.innerHTML = `<svg width="32" height="14" viewBox="-16 -7 32 14">${swatch(look(), series, marked)}</svg>`;
  return box;
};

const tooltip = (chart, state) => items => {
  const lines = notes(chart, state, [].concat(items));
  if (lines.length === 0) return '';
  const rows = lines.map(({ series, at, name, value, interval }) => chart.kind === 'load'
    ? element('tr', {}, element('td', {}, `at ${at}`), element('td', { class: 'number' }, value))
    : element('tr', {},
      element('td', {}, swatchElement(series, true), name, ...(chart.kind === 'cdf' ? [` ${at}`] : [])),
      element('td', { class: 'number' }, value), element('td', { class: 'interval' }, interval)));
  const where = chart.kind === 'sweep' || chart.kind === 'speedup'
    ? [element('caption', {}, `${chart.x.label}: ${lines[0].at}`)] : [];
  return element('table', { class: 'note' }, ...where, element('tbody', {}, ...rows));
};

class Figure {
  constructor(place, chart) {
    this.chart = chart;
    this.state = viewOf(chart);
    this.place = place;
    this.plots = [];
    this.controls = place.querySelector('.controls');
    this.panels = place.querySelector('.panels');
    this.panels.replaceChildren();
    this.legend();
    this.switches();
    this.lay();
  }

  change(what) {
    Object.assign(this.state, what);
    this.draw();
  }

  legend() {
    if (this.chart.kind === 'load') return;
    const buttons = this.chart.series.map((name, s) => {
      const button = element('button', { type: 'button', class: 'key', 'aria-pressed': 'true' }, swatchElement(s, true), name);
      button.addEventListener('click', () => {
        const shown = button.getAttribute('aria-pressed') === 'true';
        button.setAttribute('aria-pressed', String(!shown));
        this.state.hidden[shown ? 'add' : 'delete'](s);
        this.draw();
      });
      return button;
    });
    this.keys = element('div', { class: 'keys', role: 'group', 'aria-label': `Show ${this.chart.by}` }, ...buttons);
    this.controls.append(this.keys);
  }

  switches() {
    const { chart } = this;
    const side = element('div', { class: 'switches' });
    const positive = chart.panels.every(p => p.lines.every(({ points }) => points.every(([, ...ys]) => ys.every(y => y > 0))));
    if (chart.kind === 'sweep' && positive) side.append(this.toggle('Log scale', this.state.yScale === 'log', on => ({ yScale: on ? 'log' : 'linear' })));
    if (chart.kind === 'cdf') side.append(this.toggle('Zoom on the tail', false, tail => ({ tail })));
    if (chart.choice !== undefined) side.append(this.choice());
    if (side.children.length > 0) this.controls.append(side);
  }

  toggle(label, on, change) {
    const box = element('input', { type: 'checkbox' });
    box.checked = on;
    box.addEventListener('change', () => this.change(change(box.checked)));
    return element('label', {}, box, label);
  }

  choice() {
    const { label, values, first } = this.chart.choice;
    const options = values.map((name, i) => element('option', { value: i }, name));
    const select = element('select', {}, ...options);
    select.value = String(first);
    select.addEventListener('change', () => {
      this.state.choice = Number(select.value);
      this.lay();
    });
    return element('label', {}, `at ${label}`, select);
  }

  // New places for the panels that are to be seen.
  lay() {
    for (const { plot } of this.plots) plot.dispose();
    const seen = panelsIn(this.chart, this.state);
    this.panels.dataset.count = seen.length;
    this.panels.replaceChildren(...seen.map(panel => {
      const drawing = element('div', { class: 'drawing', role: 'img', 'aria-label': panel.alt });
      const title = panel.title === '' ? [] : [element('p', { class: 'panel-title' }, panel.title)];
      return element('div', { class: 'panel' }, ...title, drawing);
    }));
    this.plots = seen.map((panel, i) => {
      const box = this.panels.children[i].querySelector('.drawing');
      return { panel, box, plot: init(box, null, { renderer: 'svg' }) };
    });
    this.draw();
  }

  draw() {
    const now = look();
    for (const { panel, box, plot } of this.plots) {
      const axis = this.chart.kind === 'sweep' || this.chart.kind === 'speedup';
      plot.setOption({
        ...panelOption(this.chart, panel, this.state, now, { small: box.clientWidth < 480 }),
        tooltip: {
          trigger: axis ? 'axis' : 'item', confine: true, transitionDuration: 0,
          backgroundColor: now.paper, borderColor: now.line, textStyle: { color: now.ink, fontSize: 13 },
          axisPointer: { type: 'line', lineStyle: { color: now.line } },
          formatter: tooltip(this.chart, this.state)
        }
      }, { notMerge: true });
    }
  }

  relook() {
    [...(this.keys?.querySelectorAll('.swatch') ?? [])].forEach((old, s) => old.replaceWith(swatchElement(s, true)));
    this.draw();
  }

  resize() {
    for (const { plot } of this.plots) plot.resize();
    this.draw();
  }
}

const relook = () => {
  const button = document.getElementById('look');
  button.textContent = look() === DARK ? 'Light' : 'Dark';
  button.setAttribute('aria-label', `Switch to ${look() === DARK ? 'light' : 'dark'}`);
  for (const figure of figures) figure.relook();
};

const start = () => {
  const kept = remembered();
  if (kept === 'dark' || kept === 'light') root.dataset.look = kept;
  document.getElementById('look').hidden = false;
  for (const chart of charts) figures.push(new Figure(document.getElementById(chart.id), chart));
  relook();

  document.getElementById('look').addEventListener('click', () => {
    root.dataset.look = look() === DARK ? 'light' : 'dark';
    remember(root.dataset.look);
    relook();
  });
  dark.addEventListener('change', relook);

  let waiting;
  const sizes = new ResizeObserver(() => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => figures.forEach(figure => figure.resize()));
  });
  sizes.observe(document.querySelector('main'));

  // On paper: light, and every table open.
  addEventListener('beforeprint', () => {
    printing = true;
    for (const table of document.querySelectorAll('details:not([open])')) { table.open = true; table.dataset.printed = ''; }
    relook();
  });
  addEventListener('afterprint', () => {
    printing = false;
    for (const table of document.querySelectorAll('details[data-printed]')) { table.open = false; delete table.dataset.printed; }
    relook();
  });
};

start();
