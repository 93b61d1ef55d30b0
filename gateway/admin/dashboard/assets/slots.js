// What each node has of a room.

import {asking} from "./ask.js";
import {count, h, set, time} from "./words.js";

export const missing = ({slots_missing: n, whole_at: at}) => n ? `${n == 1 ? "1 slot" : `${count(n)} slots`} went with a lost node${at ? `, back by ${time(at)}` : ""}.` : "";

const columns = {slots_owned: "slots", slots_used: "in use", slots_free: "free", queued: "in line", kept_elsewhere: "kept twice", called: "called", on_site: "on the site", parked: "silent"};

// kept says what the loss of any one node would do to the line.
const kept = nodes => {
  const line = nodes.reduce((n, o) => n + o.queued, 0), once = line - nodes.reduce((n, o) => n + o.kept_elsewhere, 0);
  if (!line || nodes.length < 2 || nodes.some(o => !o.answers)) return "";
  return once <= 0 ? "Everybody in line is kept by two nodes: if one is lost, they wait on at the same place."
    : `${count(once)} of ${count(line)} in line are kept by one node alone: if it is lost, they are out of line until their browser asks again.`;
};

// slots is the table of a room's nodes.
export const slots = room => {
  const body = h("tbody"), lost = h("p", {class: "note", hidden: true}), twice = h("p", {class: "soft"});
  const e = h("section", {class: "card", "aria-labelledby": "slots"}, h("h2", {id: "slots"}, "At the nodes"), lost,
    h("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "Table of slots"}, h("table", {},
      h("thead", {}, h("tr", {}, ...["node", ...Object.values(columns)].map((t, i) => h("th", {scope: "col", class: i > 0 && "n"}, t)))), body)), twice);
  const show = asking(`/v1/slots?${new URLSearchParams({room})}`, all => {
    set(lost, missing(all));
    lost.hidden = !lost.textContent;
    set(twice, kept(all.nodes));
    body.replaceChildren(...all.nodes.map(n => h("tr", {}, h("th", {scope: "row"}, n.node),
      ...(n.answers ? Object.keys(columns).map(key => h("td", {class: "n"}, count(n[key]))) : [h("td", {colspan: Object.keys(columns).length, class: "soft"}, "does not answer")]))));
  });
  return {e, show};
};
