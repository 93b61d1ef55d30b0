// What the charts show: a series has a colour, a name in the key, and a value of a
// point. In charts of people those in line stand on top of those inside.

import {count, rate, span} from "./words.js";

const limit = value => ({name: "limit", class: "limit", line: "--soft", dash: [5, 4], stepped: true, value, says: p => value(p) == null ? "–" : count(value(p))});
const free = value => ({...limit(value), value: p => value(p) || null, says: p => value(p) ? count(value(p)) : value(p) == 0 ? "none" : "–"});

// Of this quarter of an hour, as it is estimated and counted in the waves.
export const lately = [
  {title: "People", between: "--wait-fill", keys: [
    {name: "in line", class: "wait", line: "--wait", value: p => p.inside + p.queued, says: p => count(p.queued)},
    {name: "inside", class: "site", line: "--site", fill: "--site-fill", value: p => p.inside, says: p => count(p.inside)},
    limit(p => p.limit),
  ]},
  {title: "Let in a minute", column: "let in a minute", keys: [
    {name: "people", class: "site", line: "--site", fill: "--site-fill", value: p => p.flow, says: p => rate(p.flow)},
    free(p => p.rate),
  ]},
  {title: "Wait of somebody who joins", column: "wait", tick: span, keys: [
    {name: "estimate", class: "wait", line: "--wait", fill: "--wait-fill", value: p => p.queued && !p.wait ? null : p.wait, says: p => p.queued ? p.wait ? span(p.wait) : "not known" : "none"},
  ]},
];

const told = (v, as) => v == null ? "–" : as(v);
const line = (name, colour, value, as = v => count(Math.round(v))) => ({name, class: colour, line: `--${colour}`, value, says: p => told(value(p), as)});
const minutely = (name, colour, count) => line(name, colour, p => p[count] == null ? null : 60 * p[count] / p.step, rate);
const quartiles = of => ["p50", "p75", "p95"].map((q, i) => line(q, ["site", "wait", "stop"][i], p => p[of]?.[q], span));

// Of the whole cluster, as it was counted.
export const past = [
  {title: "People", between: "--wait-fill", keys: [
    {name: "in line", class: "wait", line: "--wait", value: p => p.on_site == null ? null : p.on_site + p.queued, says: p => told(p.queued, v => count(Math.round(v)))},
    {...line("on site", "site", p => p.on_site), fill: "--site-fill"},
    {...line("on site at most", "stop", p => p.on_site_max), dash: [2, 3]},
    limit(p => p.total_active_users),
  ]},
  {title: "A minute", column: "a minute", keys: [
    {...minutely("let in", "site", "admissions"), fill: "--site-fill"},
    minutely("joined", "wait", "joins"),
    free(p => p.new_users_per_minute),
  ]},
  {title: "Time in line", column: "time in line", tick: span, keys: quartiles("wait")},
  {title: "Time on the site", column: "time on the site", tick: span, keys: quartiles("visit")},
  {title: "Gone before their turn, or after it", column: "a minute", keys: [
    minutely("gave up", "wait", "drop_outs"),
    minutely("called and did not come", "stop", "no_shows"),
    minutely("left early", "site", "ends_left"),
  ]},
  {title: "Refused", column: "refused a minute", keys: [
    minutely("line full", "wait", "refused_full"),
    minutely("closed", "soft", "refused_closed"),
    minutely("node overloaded", "stop", "refused_node"),
    minutely("too many of an address", "site", "refused_address"),
  ]},
];
