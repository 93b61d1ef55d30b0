// Figures and times as people read them, and the elements that say them.

const number = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});
export const day = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "medium"});

export const count = n => number.format(n);

// A rate has one digit after the point where it is small.
export const rate = n => n >= 10 || n == 0 ? count(Math.round(n)) : n.toFixed(1);

export const people = n => n == 1 ? "1 person" : `${count(n)} people`;

// The time alone, if it is today.
export const time = iso => {
  const t = new Date(iso);
  return Math.abs(t - Date.now()) < 12 * 36e5 ? clock.format(t) : day.format(t);
};

export const span = seconds => {
  const s = Math.round(seconds);
  if (s < 100) return `${s} s`;
  const m = Math.round(s / 60);
  if (m < 100) return `${m} min`;
  const h = Math.floor(m / 60);
  return h < 48 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} days`;
};

export const wait = r => !r.queued ? "none"
  : r.mode == "held" || !r.estimated_wait_seconds ? "not known"
  : `about ${span(r.estimated_wait_seconds)}`;

// waited is what those who get in now have waited: a median of seconds, null if none of them
// had to; undefined: the answer is not here yet.
export const waited = (r, p50) => !r.queued ? "none" : p50 == null ? "–" : span(p50);
export const whoGotIn = (r, p50) => r.queued && p50 === null ? "nobody who waited" : "of who gets in";

export const page = JSON.parse(document.getElementById("page").textContent);

// What limits the flow, in the node's words, with times in the reader's zone.
export const sentence = w => {
  const figures = {
    since: w.since && time(w.since), until: w.until && time(w.until), by: w.by, detail: w.detail,
    limit: count(w.total_active_users), configured: count(w.configured_total_active_users), rate: count(w.new_users_per_minute), inside: count(w.inside), queued: count(w.queued),
    missing: count(w.slots_missing), over: count(w.inside - w.total_active_users), room: count(w.total_active_users - w.inside),
    per_minute: count(Math.round(w.admitted_per_minute)),
  };
  const fill = text => text.replace(/{(\w+)}/g, (_, name) => figures[name] ?? "");
  return fill(page.sentences[w.code].replace(/\[(.*?)\]/g, (_, some) =>
    [...some.matchAll(/{(\w+)}/g)].every(([, name]) => figures[name]) ? some : ""));
};

// h makes an element: h("p", {class: "small"}, "text", another).
export const h = (name, attributes, ...children) => {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children);
  return e;
};

// set touches an element only where it says something else: what stays the same
// keeps the focus, the selection and the attention of a screen reader.
export const set = (e, text) => { if (e.textContent != text) e.textContent = text };
export const attribute = (e, name, value) => { if (e.getAttribute(name) != value) e.setAttribute(name, value) };

// figure is a number with its name and, in small, what it is measured against. Each of its
// lines has its place, so that what is below stays where it is.
export const figure = (name, {bar, peak} = {}) => {
  const value = h("span"), under = h("small"), meter = bar && h("progress", {max: 1, "aria-label": name}), most = peak && h("small", {class: "peak"});
  const e = h("div", {class: "figure"}, h("dt", {}, name), h("dd", {}, ...[value, under, most, meter].filter(Boolean)));
  return {e, show: (text, small = "", part) => {
    set(value, text);
    value.style.setProperty("--letters", text.length); // long ones are smaller
    set(under, small);
    if (meter) meter.value = part;
  }, most: text => set(most, text)};
};
