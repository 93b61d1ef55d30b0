// One chart of a room, and the table that says the same. Charts show the same time:
// who drags over one zooms all.

import {count, day, h, set} from "./words.js";

// Canvases know no rem: so many pixels are one of the page's, which a wall screen has larger.
const scale = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "short"}), exact = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});
const date = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short"});

// Times on an axis, as coarse as what it shows.
const tick = all => (all[1] - all[0] >= 86400 ? date : all[1] - all[0] < 60 ? exact : clock);

const today = at => Math.abs(1e3 * at - Date.now()) < 12 * 36e5;
export const moment = at => (today(at) ? exact : day).format(new Date(1e3 * at));

export const chart = (kind, zoomed) => {
  const values = kind.keys.map(() => h("b"));
  const when = h("p", {class: "soft small when"}); // over the plot: what is pointed at stays there
  const plot = h("div", {class: "plot", role: "img", "aria-label": `${kind.title}, as a chart; the table below has the figures`});
  const e = h("figure", {class: "chart"}, h("div", {class: "bar"}, h("h3", {}, kind.title),
    h("p", {class: "keys"}, ...kind.keys.map((k, i) => h("span", {}, h("i", {class: k.class}), k.name + " ", values[i])))), when, plot);
  let u, points = [], at = null;
  const legend = () => {
    const p = points[at ?? points.length - 1];
    kind.keys.forEach((k, i) => set(values[i], p ? k.says(p) : ""));
    set(when, at != null && p ? "at " + moment(p.at) : "");
  };
  const axis = more => ({stroke: style("--soft"), font: `${12 * scale()}px system-ui, sans-serif`, grid: {stroke: style("--line"), width: 1}, ticks: {show: false}, ...more});
  const data = () => [points.map(p => p.at), ...kind.keys.map(k => points.map(k.value))];
  const draw = () => {
    u?.destroy();
    u = new uPlot({
      width: plot.clientWidth || 600, height: plot.clientHeight || 176, legend: {show: false}, padding: [8, 28, 0, 0],
      cursor: {sync: {key: "room"}, drag: {x: true, y: false, setScale: true}, points: {size: 6}},
      scales: {x: {time: true}, y: {range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.1)]}},
      axes: [axis({size: 30 * scale(), space: 80 * scale(), values: (_, all) => all.map(t => tick(all).format(new Date(1e3 * t)))}),
        axis({size: 58 * scale(), values: (_, all) => all.map(v => v == null || kind.tick && v % 1 ? "" : kind.tick ? kind.tick(v) : count(v))})],
      series: [{}, ...kind.keys.map(k => ({stroke: style(k.line), fill: k.fill && style(k.fill), width: 1.5, dash: k.dash, paths: k.stepped && uPlot.paths.stepped({align: 1}), points: {show: false}}))],
      bands: kind.between ? [{series: [1, 2], fill: style(kind.between)}] : [],
      hooks: {
        setCursor: [v => { at = v.cursor.idx; legend() }],
        setSelect: [v => { if (v.select.width > 0) zoomed([v.posToVal(v.select.left, "x"), v.posToVal(v.select.left + v.select.width, "x")]) }],
      },
    }, data(), plot);
  };
  return {e, draw, end: () => u?.destroy(), fit: () => u?.setSize({width: plot.clientWidth, height: plot.clientHeight}), show: (some, range) => {
    points = some;
    if (!u) draw();
    u.batch(() => {
      u.setData(data(), false);
      u.setScale("x", {min: range[0], max: range[1]});
    });
    legend();
  }};
};

const rows = 240; // of a table, the newest

// For who reads rather than looks: all that the charts say, a row a point.
export const table = kinds => {
  const body = h("tbody");
  const columns = kinds.flatMap(k => k.keys.map(key => ({name: k.column ? `${k.column}, ${key.name}` : key.name, says: key.says})));
  const e = h("details", {}, h("summary", {}, "The same as a table"), h("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "The charts as a table"},
    h("table", {}, h("thead", {}, h("tr", {}, ...["time", ...columns.map(c => c.name)].map((t, i) => h("th", {scope: "col", class: i > 0 && "n"}, t)))), body)));
  return {e, show: points => {
    if (!e.open) return;
    body.replaceChildren(...points.slice(-rows).reverse().map(p => h("tr", {}, h("th", {scope: "row"}, moment(p.at)), ...columns.map(c => h("td", {class: "n"}, c.says(p))))));
  }};
};
