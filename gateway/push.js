// Has the turn told by the push service of the browser, to who ticks the box, so
// that the page need not stay open. The node puts the key in by which browsers know
// this cluster.
(key => {
"use strict";
const {words, page} = JSON.parse(document.getElementById("data").textContent);
const box = document.getElementById("tell"), script = document.currentScript, at = new URL("./", script.src).href;
const name = "anteroom/" + page.room, asked = name + "/push";
if (!navigator.serviceWorker || !self.PushManager || !self.Notification) return;

// The page says to keep it open. Once the node is to tell, it says that one need not, nor
// for how short a time a place is kept for who goes away.
const lead = document.getElementById("lead"), kept = document.getElementById("kept"), {told} = script.dataset;
let stay, still = false; // what it said; whether one need not
const put = (from, to) => from && lead.textContent.includes(from) && (lead.textContent = lead.textContent.replace(from, () => to));
const watch = new MutationObserver(() => [page.lead, words["starts.lead"]].some(text => put(text, told) && (stay = text)));
const need = not => {
  if (not == still) return;
  still = not;
  if (kept) kept.hidden = not;
  watch.disconnect();
  if (!not) return put(told, stay);
  watch.observe(lead, {childList: true});
  lead.append("");
};
const post = push => fetch(at + "push", {
  method: "POST", headers: {Accept: "application/json", "Content-Type": "application/json"}, body: JSON.stringify({push}),
});
const active = r => r.active ? r : new Promise(done => {
  const w = r.installing || r.waiting;
  w.onstatechange = () => w.state == "activated" && done(r);
});
const text = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

const on = async () => {
  if (await Notification.requestPermission() != "granted") return;
  const query = new URLSearchParams({to: page.here, tag: name, text: words.turn});
  const {pushManager} = await active(await navigator.serviceWorker.register(at + "pushworker.js?" + query));
  let s = await pushManager.getSubscription();
  if (s && text(s.options.applicationServerKey) != key) {
    await s.unsubscribe();
    s = null;
  }
  s ||= await pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key});
  const {endpoint, keys} = s.toJSON();
  const {ok} = await post({endpoint, keys, key});
  if (ok) localStorage[asked] = page.now.joined_at;
  need(ok);
};
const off = async () => {
  delete localStorage[asked];
  need(false);
  const r = await navigator.serviceWorker.getRegistration(at);
  await (await r?.pushManager.getSubscription())?.unsubscribe();
  await post(null);
};
// One after another, so that what was wanted last is what the node heard last. Whoever
// it does not work for has the page itself ring, as long as that is open.
let before = Promise.resolve();
const change = () => before = before.then(() => box.checked ? on() : off()).catch(() => need(false));
box.addEventListener("change", change);

// The node that was asked may be gone, and the page is with another one that knows
// nothing of it: that is asked again. Until it has said yes the page has to stay open.
// Who is called was told.
const look = async () => {
  if (!box.checked || document.title == words.turn || localStorage[asked] != page.now.joined_at) return;
  const r = await fetch(at + "pushed", {headers: {Accept: "application/json"}});
  if (r.ok && (await r.json()).pushed) return need(true);
  need(false);
  await on();
};
const again = () => setTimeout(() => before = before.then(look).catch(() => need(false)).then(again),
  still ? 1e3 * (page.now.refresh_interval_seconds || 20) : 5e3);
again();

// Each page of the place asks again.
if (localStorage[asked] == page.now.joined_at && Notification.permission == "granted") {
  box.checked = true;
  change();
}
})
