// The charts of a room: of the last minutes as they come, or of longer as it was kept.

import {chart, table} from "./chart.js";
import * as kinds from "./kinds.js";
import {load} from "./past.js";
import {attribute, h, set} from "./words.js";

const spans = [["15 min", 900], ["1 hour", 3600], ["1 day", 86400], ["7 days", 7 * 86400], ["30 days", 30 * 86400]];
const live = 900; // seconds that this page remembers
const again = long => long <= 3600 ? 10e3 : 60e3; // milliseconds until the past is asked for anew

// board is the charts of some kinds and their table.
const board = (some, zoomed) => {
  const all = some.map(k => chart(k, zoomed)), figures = table(some);
  let points = [];
  figures.e.addEventListener("toggle", () => figures.show(points));
  return {e: h("div", {}, ...all.map(c => c.e), figures.e), show: (now, range) => {
    points = now;
    all.forEach(c => c.show(points, range));
    figures.show(points);
  }, each: deed => all.forEach(c => c[deed]())};
};

// reportOf is the page that tells all of a time, and prints.
const reportOf = (name, from, to) => `/v1/rooms/${encodeURIComponent(name)}/report?${new URLSearchParams({from: Math.floor(from), to: Math.ceil(to), format: "html"})}`;

// charts are of the last quarter of an hour, or at first of a range that somebody has asked
// for, in Unix seconds.
export const charts = (name, memory, range) => {
  let long = range ? 86400 : live, zoom = range || null, asked = 0, turn = 0;
  const zoomed = range => { zoom = range; asked = 0; show() };
  let shown = board(range ? kinds.past : kinds.lately, zoomed);
  const back = h("button", {class: "small", type: "button", hidden: true, onclick: () => zoomed(null)}, "Show all again");
  const choose = spans.map(([text, seconds]) => h("button", {class: "small", type: "button", "aria-pressed": String(seconds == long), onclick: e => {
    if ((long <= live) != (seconds <= live)) change(seconds <= live ? kinds.lately : kinds.past);
    long = seconds;
    choose.forEach(b => b.setAttribute("aria-pressed", b == e.target));
    zoomed(null);
  }}, text));
  const says = h("p", {class: range ? "soft small said-of-past" : "soft small", role: "status"}, "Drag over a chart to look closer, in all of them.");
  const e = h("section", {class: "card", "aria-labelledby": "lately"},
    h("div", {class: "bar"}, h("h2", {id: "lately"}, "How it was"), h("p", {class: "choose"}, back, ...choose)), says, shown.e);
  const change = some => {
    const next = board(some, zoomed);
    attribute(says, "class", some == kinds.past ? "soft small said-of-past" : "soft small"); // which is longer, and changes
    shown.each("end");
    shown.e.replaceWith(next.e);
    shown = next;
  };
  const remember = async () => {
    if (Date.now() - asked < again(zoom ? zoom[1] - zoom[0] : long)) return;
    const mine = ++turn, to = Date.now() / 1e3;
    asked = Date.now();
    const range = zoom || [to - long, to];
    try {
      const {points, says: text} = await load(name, ...range);
      if (mine != turn || long <= live || !e.isConnected) return; // something else was asked for meanwhile
      says.replaceChildren(text + " ", h("a", {href: reportOf(name, ...range), target: "_blank", rel: "noopener"}, "Report on this time"));
      shown.show(points, zoom || [Math.max(range[0], points[0]?.at ?? 0), to]);
    } catch (problem) {
      set(says, `How it was is not known: ${problem.message}.`);
    }
  };
  const show = () => {
    if (!e.isConnected) return;
    back.hidden = !zoom;
    if (long > live) return void remember();
    const points = memory.of(name, long);
    if (!points.length) return;
    set(says, "Drag over a chart to look closer, in all of them.");
    const last = points.at(-1).at;
    shown.show(points, zoom || [Math.max(last - long, points[0].at), last]);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)"), redraw = () => { shown.each("draw"); asked = 0; show() };
  const resized = new ResizeObserver(() => shown.each("fit"));
  dark.addEventListener("change", redraw);
  resized.observe(e);
  return {e, show, end: () => {
    dark.removeEventListener("change", redraw);
    resized.disconnect();
    shown.each("end");
  }};
};
