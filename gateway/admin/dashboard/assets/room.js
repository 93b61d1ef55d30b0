// One room: what it does now, why, how it was, and what an operator can do.

import {advice} from "./advice.js";
import {charts} from "./charts.js";
import {changes, words} from "./overview.js";
import {steer} from "./steer.js";
import {attribute, count, figure, h, page, people, rate, sentence, set, span, time, wait} from "./words.js";

const headline = r => r.why.level == "broken" ? "this node lets nobody in" : r.why.level == "stopped" && r.why.code != "draining" ? "nobody is let in"
  : r.queued == 0 ? "nobody waits" : r.queued == 1 ? "1 person waits" : `${people(r.queued)} wait`;

const event = () => {
  const left = h("p", {class: "figure"}), text = h("p", {class: "soft"});
  const e = h("section", {class: "card note", "aria-labelledby": "event", hidden: true}, h("h2", {id: "event"}), left, text);
  return {e, show: ({at}, {next_event: v}) => {
    e.hidden = !v;
    if (!v) return;
    const now = Date.parse(at), to = iso => span((Date.parse(iso) - now) / 1e3), before = now < Date.parse(v.event_start_time);
    set(e.firstChild, `Event ${v.name}`);
    set(left, before ? `opens in ${to(v.event_start_time)}, at ${time(v.event_start_time)}` : v.event_end_time ? `open, ends in ${to(v.event_end_time)}, at ${time(v.event_end_time)}` : "open, without an end");
    set(text, [
      before && now < Date.parse(v.prequeue_start_time) ? `People gather from ${time(v.prequeue_start_time)} on.` : before ? "People gather." : "",
      v.shuffle_at_event_start ? v.drawn ? "Their order was drawn, and the seed is public." : "Their order is drawn at the start." : "",
      `Limit ${count(v.total_active_users)}${v.new_users_per_minute ? `, ${count(v.new_users_per_minute)} new users a minute` : ""}.`,
    ].filter(Boolean).join(" "));
  }};
};

const here = () => {
  const body = h("tbody"), names = {slots_owned: "slots owned", slots_used: "in use", slots_free: "free", queued: "in line", called: "called", on_site: "on the site", parked: "silent"};
  const missing = h("p", {class: "note"}), title = h("h2", {id: "here"}, `At ${page.node}`);
  const e = h("section", {class: "card", "aria-labelledby": "here"}, title, missing, h("table", {}, body));
  return {e, show: r => {
    missing.hidden = !r.slots_missing;
    set(missing, `${count(r.slots_missing)} slots of the room went with a lost node${r.whole_at ? ` and are back at ${time(r.whole_at)}` : ""}.`);
    body.replaceChildren(...Object.entries(names).map(([key, name]) => h("tr", {}, h("th", {scope: "row"}, name), h("td", {class: "n"}, count(r.here[key])))));
  }};
};

// governor is what outflow: adaptive makes of the limit, if it does.
const governor = () => {
  const left = h("p", {class: "figure"}), text = h("p", {class: "soft"});
  const e = h("section", {class: "card note", "aria-labelledby": "governor", hidden: true}, h("h2", {id: "governor"}, "What the origin bears"), left, text);
  return {e, show: ({governed: g, why}) => {
    e.hidden = !g;
    if (!g) return;
    set(left, g.total_active_users ? `${count(why.total_active_users)} people, of ${count(why.configured_total_active_users)}${g.since ? `, since ${time(g.since)}` : ""}` : `all ${count(why.configured_total_active_users)} people of the limit`);
    set(text, g.total_active_users || g.cause ? `${g.text[0].toUpperCase()}${g.text.slice(1)}.` : "The governor lowers the limit when answers fail or get slow.");
  }};
};

export const room = (name, memory) => {
  const title = h("h1", {}, name), why = h("p", {class: "lead", id: "why"}), mark = h("span", {class: "mark"}), state = h("span");
  const queued = figure("In line"), waits = figure("Wait, estimated"), inside = figure("Inside", true), flow = figure("Let in a minute");
  const [chart, coming, bears, mine, log, advised] = [charts(name, memory), event(), governor(), here(), changes(name), advice(name)];
  const controls = page.operate && steer(name);
  const e = [
    h("div", {}, h("p", {class: "crumb"}, h("a", {href: "#"}, "All rooms"), " · ", mark, " ", state), title, why),
    coming.e, bears.e, h("dl", {class: "card figures"}, ...[queued, waits, inside, flow].map(f => f.e)),
    h("div", {class: "board"}, chart.e, h("div", {class: "side"}, ...(controls ? [controls.e] : []), advised.e, log.e, mine.e)),
  ];
  if (!memory.loaded(name)) memory.load(name).then(chart.show).catch(() => {}); // without it the charts begin now
  return {e, end: chart.end, show: all => {
    const r = all.rooms.find(r => r.name == name);
    if (!r) {
      set(title, `There is no room ${name}`);
      set(why, "It was deleted, or never was.");
      e.slice(1).forEach(part => { part.hidden = true });
      return;
    }
    document.title = `${name}: ${headline(r)}`;
    set(title, `${name}: ${headline(r)}`);
    set(why, sentence(r.why));
    set(state, words(r));
    attribute(mark, "class", "mark " + r.why.level);
    queued.show(count(r.queued), r.called ? `${count(r.called)} called` : "");
    waits.show(wait(r).replace("about ", ""));
    inside.show(count(r.why.inside), `of ${count(r.why.total_active_users)}`, r.why.inside / (r.why.total_active_users || 1));
    flow.show(rate(r.admitted_per_minute), r.why.new_users_per_minute ? `of ${count(r.why.new_users_per_minute)}` : "no limit of its own");
    coming.show(all, r);
    bears.show(r);
    chart.show();
    mine.show(r);
    log.show(all);
    if (controls) controls.show(all, r);
  }};
};
