// The most people of the last day, as the whole cluster counted them.

import {asking} from "./ask.js";
import {count} from "./words.js";

const step = 300; // seconds
const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "short"});

// highest is the last step with the most in it. The one that runs has its middle to come.
const highest = (all, time) => {
  const n = Math.max(0, ...all);
  return {n, at: Math.min(Date.now(), 1e3 * (time[all.lastIndexOf(n)] + step / 2))};
};

const says = peak => peak?.n ? `24 h peak ${count(peak.n)} at ${clock.format(peak.at)}` : "";

// peaks tells them in the figures of who is in line, and of who is inside: on the site, as
// the history counts. What is more than the history knew a while ago is the peak as well.
export const peaks = (name, queued, inside) => {
  let line, site;
  const ask = asking(`/v1/rooms/${encodeURIComponent(name)}/history?from=-24h&step=${step}`, all => {
    line = highest(all.queued_max, all.time);
    site = highest(all.on_site_max, all.time);
  }, 60e3);
  const more = (peak, n, at) => n > peak?.n ? {n, at: Date.parse(at)} : peak;
  return (r, at) => {
    ask();
    line = more(line, r.queued, at);
    site = more(site, r.active, at);
    queued.most(says(line));
    inside.most(says(site));
  };
};
