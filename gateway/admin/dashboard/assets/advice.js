// What the figures of the last day speak for.

import {h} from "./words.js";

const day = 86400;

export const advice = name => {
  const list = h("ul", {class: "advice"});
  const e = h("section", {class: "card", "aria-labelledby": "advice", hidden: true}, h("h2", {id: "advice"}, "Advice"),
    h("p", {class: "soft small"}, "From the figures of the last day. It does not know what the site bears."), list);
  const load = async () => {
    const answer = await fetch(`/v1/rooms/${encodeURIComponent(name)}/report?${new URLSearchParams({from: new Date(Date.now() - 1e3 * day).toISOString()})}`);
    if (!answer.ok) return;
    const {advice} = await answer.json();
    list.replaceChildren(...advice.map(({key, text}) => h("li", {}, h("b", {}, key), " ", text)));
    e.hidden = !advice.length;
  };
  load().catch(() => {}); // without it there is nothing to say
  return {e};
};
