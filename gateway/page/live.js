(() => {
"use strict";
// Keeps the waiting page true without loading it again: one tab of this browser
// listens to the node and tells the others. Where this script cannot run, the
// Refresh header reloads the page instead.
const $ = id => document.getElementById(id);
const {words, page} = JSON.parse($("data").textContent);
const name = "anteroom/" + page.room;
const title = $("title").textContent;

// Someone in Britain reads an English page, and times in the British way.
const lang = document.documentElement.lang;
const locale = navigator.languages.find(l => (l + "-").startsWith(lang + "-")) || lang;
const number = new Intl.NumberFormat(locale);
const plural = new Intl.PluralRules(locale);
const clock = new Intl.DateTimeFormat(locale, {timeStyle: "medium"});
const time = iso => clock.format(new Date(iso));
const hour = new Intl.DateTimeFormat(locale, {timeStyle: "short"});
const date = new Intl.DateTimeFormat(locale, {dateStyle: "full", timeStyle: "short"});
const two = new Intl.NumberFormat(locale, {minimumIntegerDigits: 2});
const minutes = s => number.format(Math.floor(s / 60)) + ":" + two.format(s % 60);

const say = (key, n, more) => {
  const w = words[key];
  return (w.other ? w[plural.select(n)] || w.other : w)
    .replace(/{(\w+)}/g, (_, k) => k == "n" ? number.format(n) : more[k]);
};

// Rounds as the server does.
const span = seconds => {
  let m = Math.max(1, Math.ceil(seconds / 60));
  if (m > 20) m = 5 * Math.ceil(m / 5);
  if (m < 60) return say("minutes", m);
  m = 10 * Math.ceil(m / 10);
  const h = say("hours", Math.floor(m / 60));
  return m % 60 ? h + " " + say("minutes", m % 60) : h;
};
const wait = w => !w ? words["wait.unknown"]
  : page.method == "random" ? say("wait.draw", 0, {half: span(w.p50), most: span(w.p75)})
  : w.p50 < 60 ? words["wait.soon"]
  : say("wait.about", 0, {span: span(w.p50)});
// By the visitor's own clock, and no more exact than the span.
const turnAt = w => {
  if (!w || page.method == "random" || w.p50 < 60 || w.p50 > 36e3) return "";
  const step = w.p50 > 1200 ? 3e5 : 6e4;
  return say("turn.at", 0, {time: hour.format(new Date(step * Math.ceil((Date.now() + 1e3 * w.p50) / step)))});
};

// What was shown of a place never gets worse, whichever tab or load showed it:
// [when the place was taken and the draw that it is of, the first position seen, the lowest].
let place;
const keep = (joined, position) => {
  try { place = JSON.parse(localStorage[name]) } catch {}
  if (!place || place[0] != joined) place = [joined, position, position];
  place[2] = Math.min(place[2], position);
  try { localStorage[name] = JSON.stringify(place) } catch {}
  return place;
};

// Screen readers hear of news at once and of progress twice a minute.
let said = "", saidAt = Date.now();
const announce = (text, news) => {
  if (text == said || !news && Date.now() - saidAt < 3e4) return;
  [said, saidAt] = [text, Date.now()];
  $("status").textContent = text;
};

const set = (id, text) => {
  if ($(id) && $(id).textContent != text) $(id).textContent = text;
};
const notice = text => {
  $("note").hidden = !text;
  set("note", text);
};
// Words that only the page of somebody has whose network is full, or while the site is unhealthy.
const noted = $("note").textContent, rare = code => ["address_limit", "origin_unhealthy"].includes(code);
// The operator's messages: the one that always stands and the newest, then those of
// before. Returns what there is to read out: none of what the page came with.
let told;
const read = (all = []) => {
  const is = JSON.stringify(all);
  if (is == told) return "";
  const first = told == null, shown = all[0]?.at ? 1 : 2;
  told = is;
  const lines = all.map(({at, text}) => {
    const line = document.createElement("p"), day = at && new Date(at);
    if (at) {
      const when = document.createElement("time");
      when.textContent = (day.toDateString() == new Date().toDateString() ? hour : date).format(day);
      line.append(when, " ");
    }
    line.append(text);
    return line;
  });
  $("said").replaceChildren(...lines.slice(0, shown));
  $("old").replaceChildren(...lines.slice(shown));
  $("said").hidden = !all[0];
  $("before").hidden = !all[shown];
  return first ? "" : all[shown - 1]?.text || all[0]?.text || "";
};
let offline = false, now, heardAt = 0, ahead = 0, refresh = 20, fails = 0;
// Goes by the server's clock: many another is wrong.
const hear = o => {
  [now, heardAt] = [o, Date.now()];
  ahead = Date.parse(o.last_updated) - heardAt;
  refresh = o.refresh_interval_seconds || refresh;
};
const until = iso => Date.parse(iso) - Date.now() - ahead;

const trouble = () => offline ? words.offline : fails > 1 ? words.lost : "";

// Counts down for the eyes alone: no screen reader reads a timer out.
let ticking;
const tick = () => {
  clearTimeout(ticking);
  const ms = until(now.starts_at), s = Math.ceil(ms / 1e3);
  if ($("doors").hidden = !(ms > 0)) return;
  set("timer", [s / 3600, s / 60 % 60, s % 60].map(n => two.format(Math.floor(n))).join(":"));
  ticking = setTimeout(s > 1 ? tick : show, ms % 1e3 || 1e3);
};
const show = () => {
  if (going || claim) {
    notice(trouble());
    announce(trouble(), true);
    return;
  }
  const {position, queued, held_until: held, starts_at: starts, paused_code: paused} = now;
  const known = !paused && now.estimated_wait_seconds, left = wait(known);
  const early = until(starts) > 0;
  const opens = early ? say("starts", 0, {time: date.format(new Date(starts))}) : "";
  const why = page.reasons[paused];
  const cause = "why." + now.why, limit = words[cause];
  set("lead", early ? words["starts.lead"] : limit ? limit + " " + page.lead : page.lead);
  set("opens", opens);
  const note = trouble() || (early ? ""
    : until(held) > 0 ? say("held", 0, {time: time(held)})
    : !paused ? ""
    : rare(paused) ? noted
    : ["paused", "lost"].includes(why) ? words[why]
    : words.paused + (why ? " " + words[why] : ""));
  notice(note);
  set("updated", time(now.counted_at || now.last_updated));
  set("wait", left);
  set("at", turnAt(known));
  $("wait").parentNode.hidden = early;
  if (page.method != "random") $("stand").className = known ? "known" : "place";
  set("queued", number.format(queued));
  set("seed", now.draw?.seed);
  $("place").parentNode.hidden = page.method == "random" || early && !position;
  let progress = "";
  if (position > 0) {
    const [, first, best] = keep(now.joined_at + now.draw?.seed, position);
    set("place", number.format(best));
    $("place").className = "";
    $("bar").hidden = best == first;
    $("bar").value = (first - best) / first;
    document.title = say("tab", best, {title});
    progress = say("status", best, {wait: left});
  }
  const fresh = read(now.messages), news = fresh || note || opens;
  announce(news || progress, news && news != said);
  tick();
};

// Whoever asked for it hears of their turn where they are.
let sound, rang;
$("bell").hidden = false;
$("tell").onchange = () => {
  sound?.close();
  sound = $("tell").checked ? new AudioContext() : null;
  if (sound) self.Notification?.requestPermission();
};
const ring = () => {
  if (!sound || rang) return;
  rang = true;
  [523, 659, 784].forEach((pitch, i) => {
    const tone = sound.createOscillator(), loud = sound.createGain(), at = sound.currentTime + i / 4;
    tone.frequency.value = pitch;
    loud.gain.setValueAtTime(0.2, at);
    loud.gain.exponentialRampToValueAtTime(0.001, at + 1);
    tone.connect(loud).connect(sound.destination);
    tone.start(at);
    tone.stop(at + 1);
  });
  try {
    navigator.vibrate?.([200, 100, 200]);
    new Notification(words.turn, {tag: name}).onclick = () => focus();
  } catch {}
};

const turn = text => {
  document.title = words.turn;
  set("title", words.turn);
  set("lead", text);
  announce(words.turn, true);
};

// Nobody's visit begins unseen, where the room asks for that: whoever is not
// looking goes in by a button, for as long as the call certainly stands.
let claim = 0, claiming;
const count = () => {
  clearTimeout(claiming);
  const s = Math.max(0, Math.ceil((claim - Date.now()) / 1e3));
  set("left", minutes(s));
  claiming = setTimeout(count, 1e3);
};
const hold = () => {
  if (leaving) return true;
  if (!page.confirm || !document.hidden && !claim) return false;
  if (!claim) {
    claim = Date.now() + 1e3 * page.claim;
    turn("");
    aside(true);
    $("claim").hidden = false;
    count();
    ring();
  }
  return true;
};
// The line makes way for the call, and comes back if nobody came.
const aside = yes => ["stand", "bar", "bell"].forEach(id => $(id).hidden = yes);
const missed = () => {
  clearTimeout(claiming);
  claim = 0;
  rang = false;
  set("title", title);
  aside(false);
  $("claim").hidden = true;
};
$("enter").onclick = () => go(0);

// To stop waiting can be taken back for half a minute, and is done at once by
// whoever goes away meanwhile.
const sure = $("sure")?.textContent;
let leaving = 0, parting;
const part = () => {
  const s = Math.ceil((leaving - Date.now()) / 1e3);
  if (s < 1) return quit();
  set("sure", say("leave.soon", 0, {time: minutes(s)}));
  parting = setTimeout(part, 1e3);
};
const quit = () => {
  leaving = 0;
  clearTimeout(parting);
  $("leave").submit();
};
const leave = yes => {
  clearTimeout(parting);
  leaving = yes && Date.now() + 3e4;
  $("stay").hidden = !yes;
  $("leave").querySelector("button").hidden = yes;
  if (yes) {
    part();
    $("stay").focus();
    announce($("sure").textContent, true);
    return;
  }
  set("sure", sure);
  $("leave").parentNode.open = false;
  $("leave").parentNode.querySelector("summary").focus();
  if (now.state != "waiting") heard(now, 0);
};
if ($("leave")) {
  $("leave").onsubmit = e => {
    e.preventDefault();
    leave(true);
  };
  $("stay").onclick = () => leave(false);
}

// The server has something else to show: the site, or why there is no place.
// The ticket is in a cookie, so loading the page that the visitor wanted is all
// it takes.
let going, entering, goal;
const go = (after, to = page.here) => {
  if (going) return;
  going = true;
  goal = to;
  fails = 0;
  halt();
  if (now.state != "waiting") {
    $("claim").hidden = true;
    aside(true);
    turn(words["turn.lead"]);
    ring();
    if (sound && document.hidden) after += 1500; // to be heard
  }
  // A place that is called and not let in, again and again, asks ever less often.
  let [at, times] = [0, 0];
  try { [at, times] = JSON.parse(sessionStorage[name]) } catch {}
  times = Date.now() - at < 6e4 ? times + 1 : 0;
  try { sessionStorage[name] = JSON.stringify([Date.now(), times]) } catch {}
  if (times) after += 500 * 2 ** Math.min(times, 6);
  entering = setTimeout(enter, after);
};
// The pass first, then the site: without a network the browser would have an error
// to show in place of this page, and stay with it.
const enter = async () => {
  clearTimeout(entering);
  try {
    const r = await post(now.state == "waiting" ? page.checkin : page.leave);
    if (busy(r)) throw r;
  } catch {
    fails++;
    show();
    entering = setTimeout(enter, 1e3 * Math.min(30, 2 ** fails));
    return;
  }
  location.hash && goal == page.here ? location.reload() : location.replace(goal);
};
const post = url => fetch(url, {
  method: "POST", headers: {Accept: "application/json"}, cache: "no-store", signal: AbortSignal.timeout(1e4),
});
const busy = r => r.status == 429 || r.status > 499;

const heard = (o, after) => {
  hear(o);
  fails = 0;
  if (o.state == "called" && hold()) return show();
  if (o.state == "waiting" && claim) missed();
  if (o.state != "waiting" || o.queueing_method != page.method || o.reason != page.why) return go(after);
  // A draw, or words, that this page has nothing of: no hurry, everyone hears of it at once.
  if (!o.draw != !$("seed") || rare(o.paused_code) && !rare(page.now.paused_code)) return go(after + 1e3 * refresh * Math.random());
  show();
};
const tidings = all => {
  now.messages = all;
  show();
};
const tell = o => {
  channel?.postMessage(o);
  heard(o, 0);
};
// What has waited in a tab that was asleep is no news, and what was overtaken
// is none: the node is asked again. Clocks of nodes differ, so what it then says counts.
const older = o => until(o.last_updated) < until(now.last_updated);
const stale = o => older(o) || until(o.last_updated) < -1e4;

let channel, leading, lead, stream, streamAfter = 0, breaks = 0, timer;
const soon = s => {
  clearTimeout(timer);
  timer = setTimeout(ask, 1e3 * s);
};
const later = (pause = 0) => {
  // The stream brings the news; what is asked beside it renews the cookie. A
  // tab that listens to another asks only when that one has fallen silent.
  const quiet = Math.max(60, 3 * refresh);
  const s = fails ? Math.max(pause, Math.min(30, 2 ** fails)) * (1 + Math.random() / 2)
    : (leading ? stream ? quiet : refresh : 1.5 * quiet) * (0.9 + Math.random() / 5);
  soon(s);
};
const ask = async () => {
  clearTimeout(timer);
  let pause = 0;
  const before = now;
  try {
    const r = await post(page.checkin);
    if (r.ok) {
      const o = await r.json();
      if (now == before || !older(o)) tell(o);
    } else if (busy(r)) {
      fails++;
      pause = +r.headers.get("Retry-After") || 0;
    } else go(0, page.retry);
  } catch { fails++ }
  if (!lead) return;
  if (fails) show();
  else if (leading) listen();
  later(pause);
};
const listen = () => {
  if (stream || !page.stream || Date.now() < streamAfter) return;
  stream = new EventSource(page.stream);
  stream.onmessage = e => {
    breaks = 0;
    const o = JSON.parse(e.data);
    stale(o) ? soon(0.5) : tell(o);
  };
  stream.addEventListener("messages", e => {
    const messages = JSON.parse(e.data);
    channel.postMessage({messages});
    tidings(messages);
  });
  // Two newer streams took over, and coming back soon would end one of them; or the place is gone.
  stream.addEventListener("problem", () => breaks = 5);
  stream.onerror = () => {
    stream.close();
    stream = null;
    streamAfter = Date.now() + 15e3 * 2 ** Math.min(breaks++, 5);
    // Everyone whose node died is here at this moment: spread out.
    soon(Math.random() * Math.min(refresh, 5));
  };
};

const start = () => {
  const mine = lead = new AbortController();
  channel = new BroadcastChannel(name);
  channel.onmessage = e => {
    if (!e.data.state) return tidings(e.data.messages);
    if (stale(e.data)) return soon(0.5);
    heard(e.data, 1500); // the tab that told goes first and brings the pass
    if (!going && !leading) later();
  };
  const take = () => {
    leading = true;
    listen();
    later();
    return new Promise(done => mine.signal.addEventListener("abort", done));
  };
  if (navigator.locks) navigator.locks.request(name, {signal: mine.signal}, take).catch(() => {});
  else take();
  later();
};
const halt = () => {
  clearTimeout(timer);
  clearTimeout(ticking);
  clearTimeout(entering);
  lead?.abort();
  channel?.close();
  stream?.close();
  lead = channel = stream = null;
  leading = false;
};

const wake = () => {
  if (lead && !document.hidden && Date.now() - heardAt > 3e3) ask();
};
document.addEventListener("visibilitychange", wake);

let losing;
addEventListener("offline", () => {
  losing = setTimeout(() => {
    offline = true;
    show();
  }, 5e3);
});
addEventListener("online", () => {
  clearTimeout(losing);
  offline = false;
  show();
  if (going) enter();
  else wake();
});
addEventListener("pagehide", () => {
  if (leaving) navigator.sendBeacon($("leave").action);
  halt();
});
addEventListener("pageshow", e => {
  stop(); // the pending Refresh: from here on the page keeps itself up to date
  going = false;
  start();
  if (e.persisted) ask();
});
hear(page.now);
show();
})();
