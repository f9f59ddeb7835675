// SPDX-License-Identifier: Apache-2.0
// Draws the charts of a page that was written into files beside it, one SVG each.
//
// usage: node svg.mjs DIR
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { init } from './library.js';
import { FONT, LIGHT, swatch } from './look.js';
import { panelOption, panelsIn, viewOf } from './options.js';

const WIDTH = 960;
const MARGIN = 24;
const GAP = 24;
const PANEL = 300;

const escaped = text => String(text).replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

// About as wide as the text will be: a font's average, and a little more.
const widthOf = text => [...text].length * 7.4;

const draw = (chart, panel, view, width, height) => {
  const plot = init(null, null, { renderer: 'svg', ssr: true, width, height });
  plot.setOption(panelOption(chart, panel, view, LIGHT, { small: width < 500 }));
  const svg = plot.renderToSVGString();
  plot.dispose();
  return svg;
};

const text = (x, y, content, more = '') =>
  `<text x="${x}" y="${y}" fill="${LIGHT.ink}" font-family="${escaped(FONT)}" ${more}>${escaped(content)}</text>`;

const legend = (chart, y) => {
  if (chart.kind === 'load') return { svg: '', height: 0 };
  let [x, row] = [MARGIN, y];
  const parts = chart.series.map((name, s) => {
    const width = 44 + widthOf(name) + 20;
    if (x + width > WIDTH - MARGIN && x > MARGIN) [x, row] = [MARGIN, row + 24];
    const part = `<g transform="translate(${x + 15} ${row})">${swatch(LIGHT, s)}</g>${text(x + 38, row + 4.5, name, 'font-size="13"')}`;
    x += width;
    return part;
  });
  return { svg: parts.join(''), height: row - y + 32 };
};

// The panels of every choice, one row of them each.
const rows = chart => {
  const choices = chart.choice?.values.map((name, choice) => ({ choice, name: `${chart.choice.label} = ${name}` })) ?? [{}];
  return choices.flatMap(({ choice, name }) => {
    const view = viewOf(chart, { choice });
    return panelsIn(chart, view).map(panel => ({ panel, view, title: [name, panel.title].filter(Boolean).join(', ') }));
  });
};

const picture = chart => {
  const panels = rows(chart);
  const columns = panels.length === 1 ? 1 : panels.length % 3 === 0 && panels.length > 3 ? 3 : 2;
  const width = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns;
  const drawn = chart.kind === 'load' ? 220 : PANEL;
  const key = legend(chart, 64);
  const top = 52 + key.height;
  const titled = panels.some(({ title }) => title !== '') ? 26 : 0;
  const parts = panels.map(({ panel, view, title }, i) => {
    const x = MARGIN + (i % columns) * (width + GAP);
    const y = top + Math.floor(i / columns) * (drawn + titled + 12);
    const inner = draw(chart, panel, view, width, drawn).replace('<svg ', `<svg x="${x}" y="${y + titled}" `);
    return text(x, y + 14, title, 'font-size="13" font-weight="600"') + inner;
  });
  const height = top + Math.ceil(panels.length / columns) * (drawn + titled + 12) + MARGIN / 2;
  const alt = [chart.title, ...panels.map(({ panel }) => panel.alt)].join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">` +
    `<title>${escaped(chart.title)}</title><desc>${escaped(alt)}</desc>` +
    `<rect width="100%" height="100%" fill="${LIGHT.paper}"/>` +
    text(MARGIN, 36, chart.title, 'font-size="18" font-weight="650"') + key.svg + parts.join('') + '</svg>\n';
};

const dir = process.argv[2];
const page = readFileSync(join(dir, 'index.html'), 'utf8');
const [, json] = page.match(/<script type="application\/json" id="charts">([^<]*)<\/script>/);
for (const chart of JSON.parse(json)) writeFileSync(join(dir, `${chart.id}.svg`), picture(chart));
