// Listens to the node and shows what the address asks for.

import {Memory} from "./memory.js";
import {overview} from "./overview.js";
import {room} from "./room.js";
import {page, set, time} from "./words.js";

const $ = id => document.getElementById(id);
const memory = new Memory();
let view, stream, state = page.state, heard = 0;

const route = () => {
  const [name, query] = location.hash.slice(1).split("?"), times = new URLSearchParams(query);
  const [from, to] = ["from", "to"].map(key => Number(times.get(key))); // Unix seconds
  view?.end();
  view = name ? room(decodeURIComponent(name), memory, from > 0 && to > from && [from, to]) : overview();
  $("main").replaceChildren(...view.e);
  view.show(state);
};

// A screen reader is told when the figures grow old, not each second that they
// do not.
const fresh = (on, text) => {
  $("live").className = "live " + (on ? "on" : "off");
  set($("fresh"), text);
};

const hear = event => {
  state = JSON.parse(event.data);
  heard = Date.now();
  memory.add(state);
  view.show(state);
  fresh(true, "live");
};

const listen = () => {
  stream?.close();
  stream = new EventSource("/v1/stream");
  stream.onmessage = hear;
  stream.onerror = () => {
    if (stream.readyState == EventSource.CLOSED) setTimeout(() => document.hidden || listen(), 5e3); // refused: EventSource does not ask again
  };
};

setInterval(() => {
  if (Date.now() - heard > 3e3 && !document.hidden) fresh(false, heard ? `no news since ${time(heard)}` : "connecting");
}, 1e3);

// Browsers keep few connections to one host, and nodes few in all.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.close();
  else listen(), memory.forget();
});
addEventListener("hashchange", () => { route(); $("main").focus(); scrollTo(0, 0) });
route();
listen();
