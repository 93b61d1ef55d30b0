// What an operator can do with a room. Each asks once, and says who has it.

import {predict} from "./predict.js";
import {own, schedule} from "./schedule.js";
import {attribute, count, day, h, page, people, rate, set, span} from "./words.js";

const $ = id => document.getElementById(id);

// sure asks in a dialog, which Escape leaves.
const sure = (title, text, yes) => new Promise(done => {
  const ask = $("ask");
  set($("ask-title"), title);
  set($("ask-text"), text);
  set($("ask-yes"), yes);
  ask.returnValue = "no";
  ask.addEventListener("close", () => done(ask.returnValue == "yes"), {once: true});
  ask.showModal();
});

const send = async (method, path, body, headers) => {
  const answer = await fetch(path, {method, headers: {...(body && {"Content-Type": "application/json"}), ...headers}, body: body && JSON.stringify(body)});
  const it = await answer.json();
  if (!answer.ok) throw new Error(it.errors?.map(e => `${e.key || ""} ${e.detail}`).join("; ") || it.detail || answer.statusText);
  return {pending: answer.status == 202, ...it};
};

// A change comes into force with one wave, at all nodes that take part in it.
const has = ({members}) => {
  const [there, out] = [members.filter(m => m.in_wave), members.filter(m => !m.in_wave)].map(some => some.map(m => m.name).join(", "));
  return `In force at ${there || page.node}.` + (out ? ` ${out}: when it takes part again.` : "");
};

const length = seconds => seconds == Infinity ? "for ever" : seconds < 1 ? "not at all" : `about ${span(seconds)}`;

const foretell = (r, limit, flow) => {
  if (!(limit >= 0) || !(flow >= 0)) return "";
  const then = predict(r, limit, flow), now = predict(r, r.why.total_active_users, r.why.new_users_per_minute);
  const known = r.estimated_wait_seconds > 0 || !r.queued || r.mode == "held" || r.origin_holds;
  const first = then.drain >= 1 ? then.drain == Infinity ? "Nobody is called any more. " : `Nobody is called ${known ? `for ${length(then.drain)}, ` : ""}until ${people(r.why.inside - limit)} ${r.why.inside - limit == 1 ? "has" : "have"} left. ` : "";
  if (!r.queued) return `${first}Nobody waits. Up to ${rate(then.flow)} people a minute could go in.`;
  if (r.mode == "held" || r.origin_holds) return `Nobody is called now. When people are called again, who joins now would wait ${length(then.wait)} from then on; by the limits of now, ${length(now.wait)}.`;
  if (!known) return `${first}How long visits last is not known yet, so nobody can tell what this does to the wait.`;
  return `${first}Who joins now would wait ${length(then.wait)}; as it is, ${length(now.wait)}.`;
};

const deeds = {
  hold: ["Hold", "Nobody is called until you release it. Who waits keeps the place, who is inside stays, and others may join the line.", "Hold it"],
  release: ["Release", "People are called again, as the limit allows.", "Release it"],
  drain: ["Drain", "Nobody may join any more. Who waits is let in as the limit allows.", "Drain it"],
};

export const steer = name => {
  const base = `/v1/rooms/${encodeURIComponent(name)}`;
  const said = h("p", {class: "said", role: "status"});
  let state, now, seen = "", scheduled = [];
  // do asks, acts and tells.
  const act = async (title, text, yes, ...request) => {
    if (!await sure(title, text, yes)) return;
    set(said, "Sending …");
    try {
      const it = await send(...request);
      set(said, `${title}: ` + (it.pending ? "on its way; no wave has brought it into force yet. It counts once a majority of the nodes is back." : has(state.cluster)));
      seen = "";
      return true;
    } catch (e) {
      set(said, `${title}: nothing was changed. ${e.message}`);
    }
  };
  const limit = h("input", {type: "number", min: 0, step: 1, required: true, id: "limit", inputmode: "numeric"});
  const flow = h("input", {type: "number", min: 0, step: 1, required: true, id: "flow", inputmode: "numeric"});
  const foretold = h("p", {class: "foretold", role: "status"});
  const tell = () => set(foretold, now ? own(scheduled, now, Date.parse(state.at)) || foretell(now, limit.valueAsNumber, flow.valueAsNumber) : "");
  limit.addEventListener("input", tell);
  flow.addEventListener("input", tell);
  const limits = h("form", {id: "limits", onsubmit: e => {
    e.preventDefault();
    const body = {total_active_users: limit.valueAsNumber, new_users_per_minute: flow.valueAsNumber};
    act("Change the limits", `${name}: ${count(body.total_active_users)} people inside at most, ${body.new_users_per_minute ? count(body.new_users_per_minute) + " new ones a minute" : "no limit of new ones a minute"}. ${foretold.textContent}`, "Change them", "PATCH", base, body);
  }}, h("h3", {}, "Limits"), h("div", {class: "two"}, h("div", {}, h("label", {for: "limit"}, "People inside"), limit), h("div", {}, h("label", {for: "flow"}, "A minute (0: any)"), flow)),
    foretold, h("p", {class: "buttons"}, h("button", {}, "Change the limits")));
  const message = h("textarea", {rows: 3, id: "message", maxlength: 500});
  const post = h("form", {id: "post", onsubmit: e => {
    e.preventDefault();
    act(message.value ? "Post the message" : "Remove the message", message.value ? `Everybody who waits for ${name} reads: “${message.value}”` : `Nobody who waits for ${name} reads a message any more.`, "Do it", "PATCH", base, {message: message.value});
  }}, h("h3", {}, "Message"), h("label", {for: "message"}, "For everybody who waits"), message, h("p", {class: "buttons"}, h("button", {}, "Post it")));
  const news = h("textarea", {rows: 3, id: "news", maxlength: 500, required: true});
  const from = h("input", {type: "datetime-local", id: "from"});
  const told = h("ul", {class: "told"});
  const tellAll = h("form", {id: "tell", onsubmit: async e => {
    e.preventDefault();
    const at = from.value && new Date(from.value);
    const done = await act("Tell them", `Everybody who waits for ${name} reads ${at ? `from ${day.format(at)} on` : "at once"}: “${news.value}”`, "Tell them", "POST", `${base}/messages`,
      {text: news.value, ...(at && {at: at.toISOString()})});
    if (done) news.value = from.value = "";
    refill();
  }}, h("h3", {}, "News"), h("label", {for: "news"}, "With its time"), news, h("label", {for: "from"}, "From (empty: now)"), from,
    h("p", {class: "buttons"}, h("button", {}, "Tell them")), told);
  const list = all => told.replaceChildren(...all.map((m, i) => h("li", {}, h("span", {class: "soft small"}, day.format(new Date(m.at))), ` ${m.text} `,
    h("button", {type: "button", class: "small", onclick: async () => {
      await act("Take it back", `Nobody who waits for ${name} reads “${m.text}” any more.`, "Take it back", "PATCH", base, {messages: all.toSpliced(i, 1)});
      refill();
    }}, "Take back"))));
  const modes = Object.entries(deeds).map(([deed, [title, text, yes]]) => h("button", {type: "button", id: deed,
    onclick: () => act(`${title} ${name}`, text, yes, "POST", `${base}/${deed}`)}, title));
  const events = schedule(name, base, act, () => refill(), () => state ? Date.parse(state.at) : Date.now());
  const lost = h("div", {class: "lost"});
  const reclaim = node => h("p", {class: "note"}, `${name} waits for ${node}, which is gone and may let people in at the other side of a split. `,
    h("button", {type: "button", class: "small", onclick: () => act(`Reclaim ${node}`, `Rooms no longer wait for ${node} and use its slots. Be sure that it does not run: if it does, more people may be inside than the limit.`, "It will not return",
      "POST", `/v1/nodes/${encodeURIComponent(node)}/reclaim`)}, "It will not return"));
  const mode = h("div", {}, h("h3", {}, "Flow"), h("p", {class: "soft small"}, ""), h("p", {class: "buttons"}, ...modes), lost);
  const e = h("section", {class: "card", "aria-labelledby": "steer"}, h("h2", {id: "steer"}, "Steer"), h("div", {class: "steer"}, limits, mode, post, tellAll, events.e), said);

  // What was typed stays; what the room has now is shown where nobody types.
  const refill = async () => {
    const answer = await fetch(base);
    if (!answer.ok) return;
    const keys = await answer.json();
    for (const [field, key] of [[limit, "total_active_users"], [flow, "new_users_per_minute"], [message, "message"]]) {
      if (field != document.activeElement && field.value == (field.dataset.was ?? "")) field.value = field.dataset.was = keys[key];
    }
    list(keys.messages);
    scheduled = keys.events;
    events.show(keys);
    tell();
  };
  return {e, show: (all, r) => {
    [state, now] = [all, r];
    const [hold, release, drain] = modes;
    const gone = (r.waits_for || []).join(" ");
    if (lost.dataset.gone != gone) lost.replaceChildren(...(r.waits_for || []).map(reclaim));
    lost.dataset.gone = gone;
    hold.disabled = r.mode == "held";
    release.disabled = r.mode == "normal";
    drain.disabled = r.mode == "draining";
    set(mode.children[1], r.mode == "held" ? "The room is held." : r.mode == "draining" ? "The room drains." : r.origin_holds ? "Nobody is called: the origin is unhealthy." : "People are called as the limits allow.");
    const version = JSON.stringify([r.total_active_users, r.new_users_per_minute, all.changes[0]?.at, r.next_event, r.next_event && [r.next_event.prequeue_start_time, r.next_event.event_start_time].map(t => Date.parse(all.at) >= Date.parse(t))]);
    if (version != seen) {
      seen = version;
      refill().catch(() => {}); // the fields stay as they are
    }
    tell();
  }};
};
