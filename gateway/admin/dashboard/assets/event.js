// The event of a room that holds or comes next, and how it was at those that are over.

import {day, count, h, set, span, time} from "./words.js";

const seconds = iso => Math.floor(Date.parse(iso) / 1e3);

// pastOf is the address of a room's charts, of a time.
const pastOf = (name, from, to) => `#${encodeURIComponent(name)}?${new URLSearchParams({from, to})}`;

export const event = name => {
  const left = h("p", {class: "figure"}), text = h("p", {class: "soft"}), been = h("a", {}, "How it has been");
  const next = h("section", {class: "card note", "aria-labelledby": "event", hidden: true}, h("h2", {id: "event"}), left, text, h("p", {}, been));
  const list = h("ul"), over = h("section", {class: "card", "aria-labelledby": "over", hidden: true}, h("h2", {id: "over"}, "Events that are over"), list);
  const load = async () => {
    const {events = []} = await (await fetch(`/v1/rooms/${encodeURIComponent(name)}`)).json();
    const ended = events.filter(v => v.event_end_time && Date.parse(v.event_end_time) < Date.now()).reverse();
    list.replaceChildren(...ended.map(v => h("li", {}, h("a", {href: pastOf(name, seconds(v.prequeue_start_time || v.event_start_time), seconds(v.event_end_time) + 60)}, v.name),
      ` ${day.format(new Date(v.event_start_time))}`)));
    over.hidden = !ended.length;
  };
  let known;
  return {e: [next, over], show: ({at}, {next_event: v}) => {
    const key = `${v?.name} ${v?.event_end_time}`;
    if (key != known) load().catch(() => {}); // without it there are no links
    known = key;
    next.hidden = !v;
    if (!v) return;
    const now = Date.parse(at), to = iso => span((Date.parse(iso) - now) / 1e3), before = now < Date.parse(v.event_start_time);
    set(next.firstChild, `Event ${v.name}`);
    set(left, before ? `opens in ${to(v.event_start_time)}, at ${time(v.event_start_time)}` : v.event_end_time ? `open, ends in ${to(v.event_end_time)}, at ${time(v.event_end_time)}` : "open, without an end");
    set(text, [
      before && now < Date.parse(v.prequeue_start_time) ? `People gather from ${time(v.prequeue_start_time)} on.` : before ? "People gather." : "",
      v.shuffle_at_event_start ? v.drawn ? "Their order was drawn, and the seed is public." : "Their order is drawn at the start." : "",
      `Limit ${count(v.total_active_users)}${v.new_users_per_minute ? `, ${count(v.new_users_per_minute)} new users a minute` : ""}.`,
    ].filter(Boolean).join(" "));
    been.parentNode.hidden = now < Date.parse(v.prequeue_start_time);
    been.href = pastOf(name, seconds(v.prequeue_start_time), Math.ceil(now / 1e3) + 60); // what comes next is on its way
  }};
};
