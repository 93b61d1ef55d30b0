// How a room was in the last 32 days, as the whole cluster kept it.

import {moment} from "./chart.js";
import {count, span} from "./words.js";

const steps = 400; // about as many as a chart can show
const at = seconds => new Date(1e3 * seconds).toISOString();

// As many seconds as make that many points, and whole minutes where a day has no
// finer ones left.
const step = seconds => {
  const s = Math.max(1, Math.ceil(seconds / steps));
  return s <= 5 ? s : s <= 60 ? 10 * Math.ceil(s / 10) : 60 * Math.ceil(s / 60);
};

const columns = ["on_site", "on_site_max", "queued", "total_active_users", "new_users_per_minute", "joins", "admissions", "drop_outs", "no_shows", "ends_left",
  "refused_full", "refused_closed", "refused_node", "refused_address"];
const quartiles = ["p50", "p75", "p95"];

// load returns the points of a time, and what is to be said of all of it.
export const load = async (name, from, to) => {
  const q = new URLSearchParams({from: at(from), to: at(to), step: step(to - from)});
  const answer = await fetch(`/v1/rooms/${encodeURIComponent(name)}/history?${q}`);
  const all = await answer.json();
  if (!answer.ok) throw new Error(all.detail || answer.statusText);
  const points = all.time.map((t, i) => ({
    at: t, step: all.step, ...Object.fromEntries(columns.map(c => [c, all[c]?.[i]])),
    ...Object.fromEntries(["wait", "visit"].map(of => [of, Object.fromEntries(quartiles.map(p => [p, all[of]?.[p]?.[i]]))])),
  }));
  const known = points.filter(p => p.on_site != null); // a node ran
  return {points: points.filter(p => p.at >= known[0]?.at && p.at <= known.at(-1).at), says: says(all)};
};

const says = ({total, missing = []}) => [
  `${count(total.joins)} joined, ${count(total.admissions)} got in, ${count(total.on_site_max)} on the site at most.`,
  total.wait?.count ? `Half of those who waited did so for up to ${span(total.wait.p50)}, 95 % for up to ${span(total.wait.p95)}.` : "",
  ...missing.map(m => `${m.node} does not answer${m.until ? `; what it did is known until ${moment(Date.parse(m.until) / 1e3)}` : ", and none has its figures of less than a minute"}.`),
].filter(Boolean).join(" ");
