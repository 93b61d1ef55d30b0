// The charts of a room. They show the same time: who drags over one zooms all.

import {count, h, rate, set, span} from "./words.js";

const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// What each chart shows: a series has a colour, a name in the key and a value of a
// point. In the first one people in line stand on top of those inside.
const kinds = [
  {title: "People", between: "--wait-fill", keys: [
    {name: "in line", class: "wait", line: "--wait", value: p => p.inside + p.queued, says: p => count(p.queued)},
    {name: "inside", class: "site", line: "--site", fill: "--site-fill", value: p => p.inside, says: p => count(p.inside)},
    {name: "limit", class: "limit", line: "--soft", dash: [5, 4], value: p => p.limit, says: p => count(p.limit)},
  ]},
  {title: "Let in a minute", keys: [
    {name: "let in", class: "site", line: "--site", fill: "--site-fill", value: p => p.flow, says: p => rate(p.flow)},
    {name: "limit", class: "limit", line: "--soft", dash: [5, 4], value: p => p.rate || null, says: p => p.rate ? count(p.rate) : "none"},
  ]},
  {title: "Wait of somebody who joins", keys: [
    {name: "estimate", class: "wait", line: "--wait", fill: "--wait-fill", value: p => p.queued && !p.wait ? null : p.wait, says: p => p.queued ? p.wait ? span(p.wait) : "not known" : "none"},
  ], tick: v => span(v)},
];

const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "short"}), exact = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});

const chart = (kind, zoomed) => {
  const values = kind.keys.map(() => h("b"));
  const when = h("span", {class: "soft small"});
  const plot = h("div", {class: "plot", role: "img", "aria-label": `${kind.title}, as a chart; the table below has the figures`});
  const e = h("figure", {class: "chart"}, h("div", {class: "bar"}, h("h3", {}, kind.title, " ", when),
    h("p", {class: "keys"}, ...kind.keys.map((k, i) => h("span", {}, h("i", {class: k.class}), k.name + " ", values[i])))), plot);
  let u, points = [], at = null;
  const legend = () => {
    const p = points[at ?? points.length - 1];
    if (p) kind.keys.forEach((k, i) => set(values[i], k.says(p)));
    set(when, at != null && p ? "at " + exact.format(new Date(1e3 * p.at)) : "");
  };
  const axis = more => ({stroke: style("--soft"), font: "12px system-ui, sans-serif", grid: {stroke: style("--line"), width: 1}, ticks: {show: false}, ...more});
  const draw = () => {
    u?.destroy();
    u = new uPlot({
      width: plot.clientWidth || 600, height: plot.clientHeight || 176, legend: {show: false}, padding: [8, 28, 0, 0],
      cursor: {sync: {key: "room"}, drag: {x: true, y: false, setScale: true}, points: {size: 6}},
      scales: {x: {time: true}, y: {range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.1)]}},
      axes: [axis({size: 30, space: 80, values: (_, all) => all.map(t => (all[1] - all[0] < 60 ? exact : clock).format(new Date(1e3 * t)))}),
        axis({size: 58, values: (_, all) => all.map(v => v == null ? "" : kind.tick ? kind.tick(v) : count(v))})],
      series: [{}, ...kind.keys.map(k => ({stroke: style(k.line), fill: k.fill && style(k.fill), width: 1.5, dash: k.dash, paths: k.dash && uPlot.paths.stepped({align: 1}), points: {show: false}}))],
      bands: kind.between ? [{series: [1, 2], fill: style(kind.between)}] : [],
      hooks: {
        setCursor: [v => { at = v.cursor.idx; legend() }],
        setSelect: [v => { if (v.select.width > 0) zoomed([v.posToVal(v.select.left, "x"), v.posToVal(v.select.left + v.select.width, "x")]) }],
      },
    }, data(), plot);
  };
  const data = () => [points.map(p => p.at), ...kind.keys.map(k => points.map(k.value))];
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

// A point a minute, for who reads rather than looks.
const table = () => {
  const body = h("tbody");
  const names = ["Time", "In line", "Inside", "Limit", "Let in a minute", "Wait"];
  const e = h("details", {}, h("summary", {}, "The same as a table"), h("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "The charts as a table"},
    h("table", {}, h("thead", {}, h("tr", {}, ...names.map((t, i) => h("th", {scope: "col", class: i > 0 && "n"}, t)))), body)));
  return {e, show: points => {
    if (!e.open) return;
    const last = new Map(points.map(p => [Math.floor(p.at / 60), p]));
    body.replaceChildren(...[...last.values()].reverse().map(p => h("tr", {}, h("th", {scope: "row"}, exact.format(new Date(1e3 * p.at))),
      ...[count(p.queued), count(p.inside), count(p.limit), rate(p.flow), p.queued ? p.wait ? span(p.wait) : "not known" : "none"].map(t => h("td", {class: "n"}, t)))));
  }};
};

const spans = [["15 min", 900], ["1 hour", 3600]];

export const charts = (name, memory) => {
  let long = 900, zoom = null, points = [];
  const zoomed = range => { zoom = range; show() };
  const all = kinds.map(k => chart(k, zoomed)), figures = table();
  figures.e.addEventListener("toggle", () => figures.show(points));
  const back = h("button", {class: "small", type: "button", hidden: true, onclick: () => zoomed(null)}, "Show all again");
  const choose = spans.map(([text, seconds]) => h("button", {class: "small", type: "button", "aria-pressed": String(seconds == long), onclick: e => {
    long = seconds;
    choose.forEach(b => b.setAttribute("aria-pressed", b == e.target));
    zoomed(null);
  }}, text));
  const e = h("section", {class: "card", "aria-labelledby": "lately"},
    h("div", {class: "bar"}, h("h2", {id: "lately"}, "Lately"), h("p", {}, back, " ", ...choose.flatMap(b => [b, " "]))),
    h("p", {class: "soft small"}, "Drag over a chart to look closer, in all of them."), ...all.map(c => c.e), figures.e);
  const show = () => {
    points = memory.of(name, long);
    if (!points.length || !e.isConnected) return;
    back.hidden = !zoom;
    const last = points.at(-1).at;
    all.forEach(c => c.show(points, zoom || [Math.max(last - long, points[0].at), last]));
    figures.show(points);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)"), redraw = () => { all.forEach(c => c.draw()); show() };
  const resized = new ResizeObserver(() => all.forEach(c => c.fit()));
  dark.addEventListener("change", redraw);
  resized.observe(e);
  return {e, show, end: () => {
    dark.removeEventListener("change", redraw);
    resized.disconnect();
    all.forEach(c => c.end());
  }};
};
