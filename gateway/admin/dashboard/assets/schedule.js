// The events of a room: another one, and those that there are.

import {day, h, set, time} from "./words.js";

const when = id => h("input", {type: "datetime-local", id, step: 1});
const number = id => h("input", {type: "number", min: 1, step: 1, id, inputmode: "numeric", placeholder: "as the room"});
const labelled = (text, field) => h("div", {}, h("label", {for: field.id}, text), field);

// A field has seconds and the reader's zone. What nobody has changed stays as it was to the
// microsecond: the draw of an event goes by its start.
const short = value => value.replace(/^(.{16}):00$/, "$1"); // as some browsers give it
const local = iso => iso ? short(new Date(Date.parse(iso) - 6e4 * new Date(iso).getTimezoneOffset()).toISOString().slice(0, 19)) : "";
const moment = (field, was) => short(field.value) == local(was) ? was : field.value ? new Date(field.value).toISOString() : "";

// phase is how far an event is at a time.
const phase = (v, now) => v.suspended || now < Date.parse(v.prequeue_start_time || v.event_start_time) ? "coming" : now < Date.parse(v.event_start_time) ? "gathers" : now < Date.parse(v.event_end_time) ? "runs" : "over";

// own says of a room whose event has limits of its own that those of the room do not count
// until it is over.
export const own = (events, {next_event: v}, now) => {
  const holds = v && now >= Date.parse(v.prequeue_start_time) && events.find(e => e.name == v.name), what = holds && [holds.total_active_users && "limit", holds.new_users_per_minute && "rate"].filter(Boolean).join(" and ");
  return what ? `The event ${v.name} has a ${what} of its own until ${time(v.event_end_time)}: edit it below. This counts after it. ` : "";
};

// schedule is a form; act asks, sends and tells, and then is called with what follows; now is
// the node's time.
export const schedule = (name, base, act, refill, now) => {
  let all = [], etag = "", edited;
  const title = h("input", {id: "event-name", required: true, maxlength: 64}), [limit, rate] = ["event-limit", "event-rate"].map(number);
  const [gather, opens, ends] = ["event-gather", "event-opens", "event-ends"].map(when), drawn = h("input", {type: "checkbox", id: "event-drawn"});
  opens.required = ends.required = true;
  const heading = h("h3"), note = h("p", {class: "soft small", id: "event-note", hidden: true}), send = h("button"), leave = h("button", {type: "button", onclick: () => edit()}, "Leave it");
  const list = h("ul", {class: "told"});
  const put = async (what, text, events) => {
    const done = await act(what, text, what, "PATCH", base, {events}, {"If-Match": etag});
    refill();
    return done;
  };

  // edit fills the form with an event, or empties it. What has happened of the event stays.
  const edit = v => {
    edited = v;
    const at = v ? phase(v, now()) : "coming", runs = at == "runs";
    set(heading, v ? `Edit the event ${v.name}` : "Event");
    set(send, v ? "Change it" : "Schedule it");
    leave.hidden = !v;
    e.reset();
    if (v) {
      [title.value, limit.value, rate.value, drawn.checked] = [v.name, v.total_active_users || "", v.new_users_per_minute || "", v.shuffle_at_event_start];
      [gather.value, opens.value, ends.value] = [v.prequeue_start_time, v.event_start_time, v.event_end_time].map(local);
      ends.focus();
    }
    title.disabled = runs || at == "gathers";
    gather.disabled = opens.disabled = drawn.disabled = runs;
    note.hidden = at == "coming";
    set(note, runs ? "It has begun: its name, its start and its draw stay. Its end and its limits can be changed." : "People gather for it: its name stays. Another start has another draw than the one whose commitment they have seen.");
  };
  const e = h("form", {id: "schedule", onsubmit: async submitted => {
    submitted.preventDefault();
    const event = {...edited, name: title.value, event_start_time: moment(opens, edited?.event_start_time), event_end_time: moment(ends, edited?.event_end_time), shuffle_at_event_start: drawn.checked,
      prequeue_start_time: moment(gather, edited?.prequeue_start_time), total_active_users: limit.valueAsNumber || 0, new_users_per_minute: rate.valueAsNumber || 0};
    const text = `${gather.value ? `People gather from ${day.format(new Date(gather.value))} on, and nobody is called until it begins. ` : ""}${name} opens for it at ${day.format(new Date(opens.value))}, until ${day.format(new Date(ends.value))}.`;
    if (await put(edited ? "Change the event" : "Schedule the event", text, edited ? all.map(v => v.name == edited.name ? event : v) : [...all, event])) edit();
  }}, heading, note, labelled("Name", title), labelled("People gather from (empty: nobody does)", gather), labelled("Opens", opens), labelled("Ends", ends),
    h("div", {class: "two"}, labelled("People inside", limit), labelled("New a minute", rate)), h("label", {class: "check"}, drawn, " Draw the order of those who gathered"),
    h("p", {class: "buttons"}, send, leave), list);
  edit();

  const button = (text, deed) => h("button", {type: "button", class: "small", onclick: deed}, text);
  const entry = (v, i) => {
    const at = phase(v, now());
    return h("li", {}, h("span", {class: "soft small"}, day.format(new Date(v.event_start_time))), ` ${v.name} `, ...[
      at != "over" && button("Edit", () => edit(v)),
      at == "runs" ? button("End it now", () => put("End the event", `${name} goes on as it is without the event ${v.name}. Who waits keeps the place, and who is inside stays.`, all.with(i, {...v, event_end_time: new Date(now()).toISOString()})))
        : button("Remove", () => put("Remove the event", `${name} does not know the event ${v.name} any more. Who waits keeps the place.`, all.toSpliced(i, 1))),
    ].filter(Boolean).flatMap(b => [b, " "]));
  };
  return {e, show: keys => {
    [all, etag] = [keys.events, keys.etag];
    list.replaceChildren(...all.map(entry));
    if (edited && !all.some(v => v.name == edited.name)) edit(); // somebody has removed it
  }};
};
