// What each node has of a room.

import {asking} from "./ask.js";
import {count, h, set, time} from "./words.js";

export const missing = ({slots_missing: n, whole_at: at}) => n ? `${n == 1 ? "1 slot" : `${count(n)} slots`} went with a lost node${at ? `, back by ${time(at)}` : ""}.` : "";

const columns = {slots_owned: "slots", slots_used: "in use", slots_free: "free", queued: "in line", called: "called", on_site: "on the site", parked: "silent"};

// slots is the table of a room's nodes.
export const slots = room => {
  const body = h("tbody"), lost = h("p", {class: "note", hidden: true});
  const e = h("section", {class: "card", "aria-labelledby": "slots"}, h("h2", {id: "slots"}, "At the nodes"), lost,
    h("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "Table of slots"}, h("table", {},
      h("thead", {}, h("tr", {}, ...["node", ...Object.values(columns)].map((t, i) => h("th", {scope: "col", class: i > 0 && "n"}, t)))), body)));
  const show = asking(`/v1/slots?${new URLSearchParams({room})}`, all => {
    set(lost, missing(all));
    lost.hidden = !lost.textContent;
    body.replaceChildren(...all.nodes.map(n => h("tr", {}, h("th", {scope: "row"}, n.node),
      ...(n.answers ? Object.keys(columns).map(key => h("td", {class: "n"}, count(n[key]))) : [h("td", {colspan: 7, class: "soft"}, "does not answer")]))));
  });
  return {e, show};
};
