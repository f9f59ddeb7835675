// SPDX-License-Identifier: Apache-2.0
// Colours, markers and dashes. A series keeps its number's in every chart, and no
// two of the first eight share any of the three.

export const MARKERS = ['circle', 'rect', 'triangle', 'diamond',
  'path://M0 0H10L5 9Z', 'path://M3 0h4v3h3v4h-3v3h-4v-3h-3v-4h3z', 'path://M0 3.6L5 0L10 3.6L8 9.6H2Z', 'path://M0 0L5 2.6L10 0L7.4 5L10 10L5 7.4L0 10L2.6 5Z'];

// For the legends, which are drawn without the library: about (0, 0), 5 either way.
const OUTLINES = ['M0-4.6a4.6 4.6 0 1 0 .01 0z', 'M-4.2-4.2h8.4v8.4h-8.4z', 'M0-4.8L5 4.2H-5z', 'M0-5.6L5.2 0L0 5.6L-5.2 0z',
  'M-5-4.2H5L0 4.8z', 'M-2-5h4v3h3v4h-3v3h-4v-3h-3v-4h3z', 'M-5-1.4L0-5L5-1.4L3 4.6H-3z', 'M-5-5L0-2.4L5-5L2.4 0L5 5L0 2.4L-5 5L-2.4 0z'];

export const DASHES = ['solid', [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4], [9, 3, 2, 3, 2, 3], [1, 5]];

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif";

// Each has a contrast of at least 3.3 with the paper. Also with any of the three kinds
// of colour blindness, two of a scheme are at least 14 apart (CIE76), 20 for most.
export const LIGHT = {
  name: 'light',
  paper: '#ffffff', ink: '#1b2430', soft: '#56616f', line: '#c3cad3', grid: '#e8ebef', alarm: '#b3261e',
  series: ['#0b62c4', '#c24a06', '#00796b', '#621809', '#36295c', '#7f24fb', '#c768b8', '#aa884f']
};

export const DARK = {
  name: 'dark',
  paper: '#161c24', ink: '#e8edf3', soft: '#a3afbd', line: '#4a5665', grid: '#28313c', alarm: '#ff8a80',
  series: ['#62aeff', '#ff9c4f', '#36cdaa', '#ce3148', '#d5d9fe', '#7948fc', '#a94fa4', '#f7e20b']
};

export const style = (look, s) => ({
  color: look.series[s % look.series.length],
  marker: MARKERS[s % MARKERS.length],
  dash: DASHES[s % DASHES.length]
});

const plain = dash => dash === 'solid' ? '' : ` stroke-dasharray="${dash.join(' ')}"`;

// A piece of the series' line, 30 wide about (0, 0), as SVG.
export const swatch = (look, s, marked = true) => {
  const { color, dash } = style(look, s);
  const mark = marked ? `<path d="${OUTLINES[s % OUTLINES.length]}" fill="${color}"/>` : '';
  return `<path d="M-15 0H15" stroke="${color}" stroke-width="2" fill="none"${plain(dash)}/>${mark}`;
};
