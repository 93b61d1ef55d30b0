// All rooms at a glance, the nodes and the last changes.

import {asking, waits as asksWaits} from "./ask.js";
import {missing} from "./slots.js";
import {attribute, count, figure, h, people, rate, sentence, set, span, time, wait, waited, whoGotIn} from "./words.js";

const worst = ["fine", "queued", "stopped", "broken"];

// What one look has to answer.
const verdict = (rooms, cluster) => {
  const at = level => rooms.filter(r => r.why.level == level);
  const names = some => some.length > 3 ? `${some.length} rooms` : some.map(r => r.name).join(", ");
  const ill = at("broken").filter(r => r.why.code == "origin_unhealthy"), broken = at("broken").filter(r => !ill.includes(r));
  const stopped = [...ill, ...at("stopped")], queued = at("queued");
  if (cluster.waiting || broken.length) return "This node lets nobody in";
  if (!rooms.length) return "There are no rooms yet";
  if (stopped.length) return `Nobody is let into ${names(stopped)}`;
  const n = queued.reduce((sum, r) => sum + r.queued, 0);
  if (n) return `${n == 1 ? "1 person waits" : `${people(n)} wait`} for ${names(queued)}`;
  return "All is well, nobody waits";
};

const lead = (rooms, {coordinator, members, grade}) => {
  const inWave = members.filter(m => m.in_wave).length;
  const nodes = members.length == 1 ? "1 node" : `${inWave == members.length ? "all" : `${inWave} of`} ${members.length} nodes take part`;
  return [rooms.length == 1 ? "1 room" : `${rooms.length} rooms`, nodes, coordinator && `${coordinator} runs the waves`].filter(Boolean).join(" · ");
};

export const words = r => r.mode != "normal" && {held: "held", draining: "drains"}[r.mode]
  || (r.suspended ? "suspended" : r.why.level == "queued" ? "queueing" : r.open ? "open" : r.why.code == "origin_unhealthy" ? "site unhealthy" : r.why.level == "stopped" ? "stopped" : "full");

// row is one room, made once and then kept true.
const row = name => {
  const mark = h("span", {class: "mark"}), state = h("span", {class: "state"}), why = h("p", {class: "why"});
  const queued = figure("In line"), inside = figure("Inside", {bar: true}), now = figure("Wait now"), then = figure("Wait predicted"), flow = figure("Let in a minute");
  const card = h("article", {class: "room card"},
    h("h2", {}, mark, h("a", {href: "#" + encodeURIComponent(name)}, name), state),
    ...[queued, inside, now, then, flow].map(f => h("dl", {}, f.e)), why);
  return {e: h("li", {}, card), show: (r, p50) => {
    attribute(mark, "class", "mark " + r.why.level);
    set(state, words(r));
    queued.show(count(r.queued));
    now.show(waited(r, p50), whoGotIn(r, p50));
    then.show(wait(r), "of who joins");
    inside.show(count(r.why.inside), `of ${count(r.why.total_active_users)}`, r.why.inside / (r.why.total_active_users || 1));
    flow.show(rate(r.admitted_per_minute), r.why.new_users_per_minute ? `of ${count(r.why.new_users_per_minute)}` : "");
    set(why, sentence(r.why));
  }};
};

const depth = (m, all) => {
  let n = 0;
  for (let p = m.parent; p && n < all.length; n++) p = all.find(o => o.name == p)?.parent;
  return n;
};

const sign = ms => `${ms > 0 ? "+" : ms < 0 ? "−" : ""}${Math.abs(ms).toFixed(1)} ms`;

const nodes = () => {
  const body = h("tbody"), version = h("th", {scope: "col", class: "n"}, "Version"), lost = h("p", {class: "note", hidden: true});
  const parts = new Map(); // by node
  const ask = asking("/v1/slots", all => {
    parts.clear();
    all.nodes.forEach(n => parts.set(n.node, n));
    set(lost, missing(all));
    lost.hidden = !lost.textContent;
  });
  const used = ({name}) => parts.get(name)?.answers ? `${count(parts.get(name).slots_used)} of ${count(parts.get(name).slots_owned)}` : parts.has(name) ? "does not answer" : "–";
  const e = h("section", {class: "card", "aria-labelledby": "nodes"},
    h("h2", {id: "nodes"}, "Nodes"), lost,
    h("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "Table of nodes"}, h("table", {},
      h("thead", {}, h("tr", {}, ...["Node", "Part", "Slots in use", "Link", "Clock", "Up"].map((t, i) => h("th", {scope: "col", class: i > 1 && "n"}, t)), version)), body)));
  return {e, show: ({cluster, at}) => {
    ask();
    version.hidden = new Set(cluster.members.map(m => m.version)).size < 2; // the page says this node's
    const rows = cluster.members.map(m => {
      const here = m.name == cluster.node;
      const part = !m.in_wave ? "left out of waves" : m.name == cluster.coordinator ? "runs the waves" : "takes part";
      return [m, [part, used(m), here ? "here" : m.round_trip_seconds ? `${(1e3 * m.round_trip_seconds).toFixed(1)} ms` : "–",
        here ? "this one" : m.round_trip_seconds ? sign(1e3 * m.clock_ahead_seconds) : "–", span((Date.parse(at) - Date.parse(m.started)) / 1e3), ...(version.hidden ? [] : [m.version || "not said"])]];
    });
    body.replaceChildren(...rows.map(([m, cells]) => h("tr", {},
      h("th", {scope: "row"}, h("span", {class: "tree", "aria-hidden": true}, "\u2003".repeat(Math.max(0, depth(m, cluster.members) - 1)) + (m.parent ? "└ " : "")), m.name),
      ...cells.map((c, i) => h("td", {class: i > 0 && "n"}, c)))));
  }};
};

// A list is written as JSON, which nobody reads here.
const isList = value => value?.startsWith("[{");

const change = c => h("li", {}, h("time", {datetime: c.at}, time(c.at)), " ", h("b", {}, c.action), " ", c.room, " ",
  h("span", {class: "who"}, `by ${c.who}${c.from ? ` from ${c.from}` : ""}`),
  ...c.changes.map(({key, from, to}) => h("span", {class: "what small"}, isList(from) || isList(to) ? `${key} changed` : `${key}: ${from || "–"} → ${to || "–"}`)));

// changes shows the last ones, and all of them when asked.
export const changes = of => {
  const list = h("ol", {class: "changes"}), none = h("p", {class: "soft small"}, "Nobody has changed anything since this node started.");
  const more = h("button", {class: "small", type: "button", onclick: async () => {
    const {entries} = await (await fetch("/v1/audit")).json();
    all = true;
    fill(entries);
  }}, "Show all");
  let all = false, newest = "";
  const fill = some => {
    const mine = some.filter(c => !of || c.room == of);
    list.replaceChildren(...mine.map(change));
    none.hidden = mine.length > 0;
    more.hidden = all || !some.length;
  };
  const e = h("section", {class: "card", "aria-labelledby": "changes"}, h("div", {class: "bar"}, h("h2", {id: "changes"}, "Changes by operators"), more), none, list);
  return {e, show: ({changes}) => {
    const at = JSON.stringify(changes[0] || "none");
    if (at == newest) return;
    [newest, all] = [at, false];
    fill(changes);
  }};
};

export const overview = () => {
  const title = h("h1"), under = h("p", {class: "lead"}), warned = h("div"), list = h("ul", {class: "rooms"});
  const parts = [nodes(), changes()], rows = new Map();
  let waited; // median, by room into which somebody got
  const ask = asksWaits(all => { waited = all });
  const e = [h("div", {}, title, under), warned, list, h("div", {class: "pair"}, ...parts.map(p => p.e))];
  return {e, end() {}, show: state => {
    const {rooms, cluster} = state;
    document.title = `${verdict(rooms, cluster)} · ${cluster.node}`;
    set(title, verdict(rooms, cluster));
    set(under, cluster.waiting ? `${cluster.waiting}. Places and passes are kept.` : lead(rooms, cluster));
    const warnings = (cluster.warnings || []).join("\n");
    warned.hidden = !warnings;
    if (warned.textContent != warnings) warned.replaceChildren(...(cluster.warnings || []).map(w => h("p", {class: "note"}, w)));
    if (rooms.some(r => r.queued)) ask();
    for (const r of rooms) {
      if (!rows.has(r.name)) rows.set(r.name, row(r.name));
      rows.get(r.name).show(r, waited && (waited.get(r.name) ?? null));
    }
    const shown = rooms.map(r => rows.get(r.name).e);
    if (shown.length != list.children.length || shown.some((e, i) => list.children[i] != e)) list.replaceChildren(...shown);
    parts.forEach(p => p.show(state));
  }};
};
