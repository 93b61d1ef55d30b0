// One room: what it does now, why, how it was, and what an operator can do.

import {advice} from "./advice.js";
import {asking, waits as asksWaits} from "./ask.js";
import {charts} from "./charts.js";
import {event} from "./event.js";
import {changes, words} from "./overview.js";
import {peaks} from "./peaks.js";
import {slots} from "./slots.js";
import {steer} from "./steer.js";
import {attribute, count, figure, h, page, people, rate, sentence, set, span, time, wait, waited, whoGotIn} from "./words.js";

const headline = r => r.why.code == "origin_unhealthy" ? "nobody is let in, the site is unhealthy" : r.why.level == "broken" ? "this node lets nobody in" : r.why.level == "stopped" && r.why.code != "draining" ? "nobody is let in"
  : r.queued == 0 ? "nobody waits" : r.queued == 1 ? "1 person waits" : `${people(r.queued)} wait`;

// governor is what outflow: adaptive makes of the limit, if it does.
const governor = () => {
  const left = h("p", {class: "figure"}), text = h("p", {class: "soft lines2"});
  const e = h("section", {class: "card note", "aria-labelledby": "governor", hidden: true}, h("h2", {id: "governor"}, "What the origin bears"), left, text);
  return {e, show: ({governed: g, why}) => {
    e.hidden = !g;
    if (!g) return;
    set(left, g.total_active_users ? `${count(why.total_active_users)} people, of ${count(why.configured_total_active_users)}${g.since ? `, since ${time(g.since)}` : ""}` : `all ${count(why.configured_total_active_users)} people of the limit`);
    set(text, g.total_active_users || g.cause ? `${g.text[0].toUpperCase()}${g.text.slice(1)}.` : "The governor lowers the limit when answers fail or get slow.");
  }};
};

const brief = seconds => seconds < 1 ? `${Math.ceil(1e3 * seconds)} ms` : span(seconds);

// answers are what visitors of this node got from the site of late.
const answers = name => {
  const text = h("p", {class: "lines2"}), e = h("section", {class: "card", "aria-labelledby": "answers", hidden: true}, h("h2", {id: "answers"}, "What the site answers"),
    h("p", {class: "soft small"}, `To visitors by way of ${page.node}, in the last five minutes.`), text);
  const ask = asking("/v1/health", ({rooms}) => {
    const a = rooms.find(r => r.room == name)?.answers;
    e.hidden = !a;
    if (a) set(text, `${count(a.count)} ${a.count == 1 ? "request" : "requests"}, ${a.failed_percent} % of them failed. Half of the answers began within ${brief(a.p50_seconds)}, 95 % within ${brief(a.p95_seconds)}, 99 % within ${brief(a.p99_seconds)}.`);
  });
  return {e, show: ask};
};

export const room = (name, memory, range) => {
  const title = h("h1", {}, name), why = h("p", {class: "lead", id: "why"}), mark = h("span", {class: "mark"}), state = h("span");
  const queued = figure("In line", {peak: true}), inside = figure("Inside", {bar: true, peak: true}), now = figure("Wait now"), then = figure("Wait predicted"), flow = figure("Let in a minute");
  const [chart, coming, bears, mine, log, advised] = [charts(name, memory, range), event(name), governor(), slots(name), changes(name), advice(name)];
  const origin = answers(name), most = peaks(name, queued, inside);
  let p50; // seconds that those waited who got in of late; null: nobody did
  const ask = asksWaits(all => { p50 = all.get(name) ?? null });
  const controls = page.operate && steer(name);
  const e = [
    h("div", {}, h("p", {class: "crumb"}, h("a", {href: "#"}, "All rooms"), " · ", mark, " ", state), title, why),
    ...coming.e, bears.e, h("dl", {class: "card figures"}, ...[queued, inside, now, then, flow].map(f => f.e)),
    h("div", {class: "board"}, chart.e, h("div", {class: "side"}, ...(controls ? [controls.e] : []), advised.e), h("div", {class: "rest"}, mine.e, origin.e, log.e)),
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
    if (r.queued) ask();
    now.show(waited(r, p50), whoGotIn(r, p50));
    then.show(wait(r).replace("about ", ""), "of who joins");
    inside.show(count(r.why.inside), `of ${count(r.why.total_active_users)}`, r.why.inside / (r.why.total_active_users || 1));
    flow.show(rate(r.admitted_per_minute), r.why.new_users_per_minute ? `of ${count(r.why.new_users_per_minute)}` : "no limit");
    most(r, all.at);
    coming.show(all, r);
    bears.show(r);
    chart.show();
    mine.show();
    origin.show();
    log.show(all);
    if (controls) controls.show(all, r);
  }};
};
