// The events of a room: another one, and those that there are.

import {day, h} from "./words.js";

const when = id => h("input", {type: "datetime-local", id, step: 1});
const iso = field => field.value ? new Date(field.value).toISOString() : "";
const labelled = (text, field) => h("div", {}, h("label", {for: field.id}, text), field);

// schedule is a form; act asks, sends and tells, and then is called with what follows.
export const schedule = (name, base, act, refill) => {
  let all = [], etag = "";
  const title = h("input", {id: "event-name", required: true, maxlength: 64}), limit = h("input", {type: "number", min: 1, step: 1, id: "event-limit", inputmode: "numeric"});
  const [gather, opens, ends] = ["event-gather", "event-opens", "event-ends"].map(when), drawn = h("input", {type: "checkbox", id: "event-drawn"});
  opens.required = ends.required = true;
  const list = h("ul", {class: "told"});
  const put = async (what, text, events) => {
    const done = await act(what, text, what, "PATCH", base, {events}, {"If-Match": etag});
    refill();
    return done;
  };
  const e = h("form", {id: "schedule", onsubmit: async submitted => {
    submitted.preventDefault();
    const event = {name: title.value, event_start_time: iso(opens), event_end_time: iso(ends), shuffle_at_event_start: drawn.checked,
      ...(gather.value && {prequeue_start_time: iso(gather)}), ...(limit.value && {total_active_users: limit.valueAsNumber})};
    const text = `${gather.value ? `People gather from ${day.format(new Date(gather.value))} on, and nobody is called until it begins. ` : ""}${name} opens for it at ${day.format(new Date(opens.value))}, until ${day.format(new Date(ends.value))}.`;
    if (await put("Schedule the event", text, [...all, event])) e.reset();
  }}, h("h3", {}, "Event"), labelled("Name", title), labelled("People gather from (empty: nobody does)", gather), labelled("Opens", opens), labelled("Ends", ends),
    labelled("People inside (empty: as in the room)", limit), h("label", {class: "check"}, drawn, " Draw the order of those who gathered"),
    h("p", {class: "buttons"}, h("button", {}, "Schedule it")), list);
  return {e, show: keys => {
    [all, etag] = [keys.events, keys.etag];
    list.replaceChildren(...all.map((v, i) => h("li", {}, h("span", {class: "soft small"}, day.format(new Date(v.event_start_time))), ` ${v.name} `,
      h("button", {type: "button", class: "small", onclick: () => put("Remove the event", `${name} does not know the event ${v.name} any more. Who waits keeps the place.`, all.toSpliced(i, 1))}, "Remove"))));
  }};
};
