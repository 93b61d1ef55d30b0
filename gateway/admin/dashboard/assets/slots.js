// What each node has of a room, or of all of them: all nodes are asked every few seconds,
// while somebody looks.

import {count, h, set, time} from "./words.js";

const every = 5e3; // milliseconds

// asking calls told with what the nodes say of a room; an empty name: of all.
export const asking = (room, told) => {
  let asked = 0;
  const ask = async () => {
    const answer = await fetch(`/v1/slots${room && `?${new URLSearchParams({room})}`}`);
    if (answer.ok) told(await answer.json());
  };
  return () => {
    if (Date.now() - asked < every) return;
    asked = Date.now();
    ask().catch(() => {}); // the next time
  };
};

export const missing = ({slots_missing: n, whole_at: at}) => n ? `${n == 1 ? "1 slot" : `${count(n)} slots`} went with a lost node${at ? `, back by ${time(at)}` : ""}.` : "";

const columns = {slots_owned: "slots", slots_used: "in use", slots_free: "free", queued: "in line", called: "called", on_site: "on the site", parked: "silent"};

// slots is the table of a room's nodes.
export const slots = room => {
  const body = h("tbody"), lost = h("p", {class: "note", hidden: true});
  const e = h("section", {class: "card", "aria-labelledby": "slots"}, h("h2", {id: "slots"}, "At the nodes"), lost,
    h("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "Table of slots"}, h("table", {},
      h("thead", {}, h("tr", {}, ...["node", ...Object.values(columns)].map((t, i) => h("th", {scope: "col", class: i > 0 && "n"}, t)))), body)));
  const show = asking(room, all => {
    set(lost, missing(all));
    lost.hidden = !lost.textContent;
    body.replaceChildren(...all.nodes.map(n => h("tr", {}, h("th", {scope: "row"}, n.node),
      ...(n.answers ? Object.keys(columns).map(key => h("td", {class: "n"}, count(n[key]))) : [h("td", {colspan: 7, class: "soft"}, "does not answer")]))));
  });
  return {e, show};
};
