package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// confirms presses a button and says yes to what is asked.
func (p *person) confirms(selector, title string) {
	p.t.Helper()
	p.click(selector)
	p.until("the question", fmt.Sprintf("document.querySelector('dialog').open && document.querySelector('#ask-title').textContent === %q", title))
	p.picture("asked " + title)
	p.click("#ask-yes")
}

// types puts a value into a field as a person does: what listens to it hears so.
func (p *person) types(selector, value string) {
	p.t.Helper()
	p.until(selector+" to type into", fmt.Sprintf("(e => { e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); return true })(document.querySelector(%q))", value, selector))
}

// An operator sees a line form, steers the room, and sees it drain.
func TestAnOperatorSteersARoom(t *testing.T) {
	shop := demo(t)
	p := newPerson(t)
	p.open(adminOf(t, shop) + "/")
	p.sees("All is well, nobody waits")
	p.sees("all 3 nodes take part")
	inside := guests(t, shop, 5, 3)
	p.sees("3 people wait for shop")
	p.sees("total_active_users limits the flow: 5 of 5 are inside")
	p.until("what all nodes have", `[...document.querySelectorAll("#nodes ~ .wide tbody tr")].map(r => r.cells[2].textContent.match(/^(\d+) of (\d+)$/)).reduce(([u, o], m) => [u + Number(m?.[1]), o + Number(m?.[2])], [0, 0]).join() === "5,5"`)
	p.picture("rooms")
	p.isAccessible("rooms")
	p.click(".room a")
	p.sees("shop: 3 people wait")
	p.until("the charts", "document.querySelectorAll('.chart canvas').length === 3")
	p.until("the slots of the nodes", `[...document.querySelectorAll("#slots ~ .wide tbody tr")].reduce((n, r) => n + Number(r.cells[1].textContent), 0) === 5`)
	p.until("that each place is kept twice", `document.querySelector("#slots").parentElement.textContent.includes("Everybody in line is kept by two nodes")`)
	p.until("the limit in its field", "limit.value === '5' && flow.value === '0'")
	p.until("the most of the last day, and no time to come", `(said => {
		const [, n, h, m] = said.match(/^24 h peak (\d+) at (\d+):(\d+)$/), now = new Date();
		return n === "3" && (60 * (now.getHours() - h) + now.getMinutes() - m + 1440) % 1440 < 720;
	})(document.querySelector(".peak").textContent)`)
	p.isAccessible("room")

	p.types("#limit", "3")
	p.sees("until 2 people have left")
	p.confirms("#limits button", "Change the limits")
	p.sees("In force at node-1, node-2, node-3.")
	p.sees("5 people are inside and the limit is 3: nobody is called until 2 have left.")
	p.confirms("#hold", "Hold shop")
	p.sees("Held by loopback since")
	p.sees("shop: nobody is let in")
	p.picture("held")
	p.isAccessible("held")
	p.types("#message", "Back at ten.")
	p.confirms("#post button", "Post the message")
	p.sees("Post the message: In force")
	waits := newPerson(t)
	waits.open(shop + "/")
	waits.sees("Back at ten.")
	waits.until("to mark the page, and note when something is told", `window.mark = new MutationObserver(() => window.told ??= Date.now()), mark.observe(said, {childList: true}), true`)
	p.types("#news", "The harvest is in.")
	p.click("#tell button")
	p.click("#ask-yes")
	sent := time.Now()
	waits.sees("The harvest is in.")
	if at, err := eval[int64](waits, "told"); err == nil {
		t.Logf("an open page told of it %v after it was sent", time.UnixMilli(at).Sub(sent).Round(time.Millisecond))
	}
	waits.stayed()
	waits.picture("news")
	waits.isAccessible("news")
	p.sees("Take back")
	p.picture("news")
	p.isAccessible("news")
	p.confirms(".told button", "Take it back")
	waits.until("it to be gone", `!said.textContent.includes("harvest")`)
	waits.stayed()
	p.sees("until it is released. 4 wait.")
	p.confirms("#release", "Release shop")
	for _, g := range inside[:5] {
		g.goesOut()
	}
	for _, g := range inside[5:] {
		g.comesIn()
	}
	p.types("#limit", "30")
	p.confirms("#limits button", "Change the limits")
	waits.sees("The new harvest is here")
	p.sees("shop: nobody waits")
	p.do("go back", chromedp.Evaluate[chromedp.Void]("location.hash = ''"))
	p.sees("All is well, nobody waits")
	p.sees("total_active_users: 3 → 30")

	// All of it was counted, at whichever node it happened.
	p.do("go to the room", chromedp.Evaluate[chromedp.Void]("location.hash = 'shop'"))
	p.click(".choose button:nth-of-type(3)")
	p.sees("9 joined, 9 got in, 5 on the site at most.")
	p.until("a report on that time", `fetch(document.querySelector("#main a[target=_blank]").href).then(a => a.text()).then(t => t.includes("got in"))`)
	p.until("the charts of the past", "document.querySelectorAll('.chart canvas').length === 6")
	p.picture("charts of the past")
	p.click("details summary")
	p.until("the table", "document.querySelectorAll('details tbody tr').length > 0")
	p.picture("past")
	p.isAccessible("past")
	p.click(".choose button:nth-of-type(2)")
	p.until("the charts of now", "document.querySelectorAll('.chart canvas').length === 3")

	// Advice takes a longer crowd than a test has.
	p.do("be advised", chromedp.Evaluate[chromedp.Void](`import("/assets/advice.js").then(({advice}) => {
		window.fetch = async () => Response.json({advice: [{key: "session_duration", text: "Half of the visits end in 2m."}]});
		document.querySelector(".side").prepend(advice("shop").e);
	})`))
	p.sees("session_duration Half of the visits end in 2m.")
	p.isAccessible("advised")
	p.do("ask the node again", chromedp.Reload())
	p.until("news", "live.className == 'live on'")

	// A demo loses no node, so the page is told of one; the node knows better.
	p.do("hear of a node that is gone", chromedp.Evaluate[chromedp.Void](`import("/assets/steer.js").then(async ({steer}) => {
		const s = steer("shop"), room = await (await fetch("/v1/rooms/shop")).json(), cluster = await (await fetch("/v1/cluster")).json();
		document.querySelector(".steer").closest("section").replaceWith(s.e);
		s.show({cluster, changes: []}, {...room, why: {...room, inside: 0}, waits_for: ["node-9"]});
	})`))
	p.sees("shop waits for node-9, which is gone")
	p.confirms(".lost button", "Reclaim node-9")
	p.sees("Reclaim node-9: nothing was changed. No node of that name was in a wave with this one")
}

// moved makes the views of the dashboard with figures of one digit, and with figures of
// five, of whatever limits the flow, and tells what there is to press that is not at the
// same place in both.
const moved = `(async () => {
	const [{overview}, {room}, {Memory}] = await Promise.all(["overview", "room", "memory"].map(name => import("/assets/" + name + ".js")));
	const {state} = JSON.parse(document.getElementById("page").textContent), name = state.rooms[0].name;
	const few = {n: 3, seconds: 4, rate: 0.4}, many = {n: 12345, seconds: 5400, rate: 4321};
	const kept = f => ({
		"/v1/slots": {nodes: [{node: "node-1", answers: true, slots_owned: f.n, slots_used: f.n, slots_free: f.n, queued: f.n, called: f.n, on_site: f.n, parked: f.n, kept_elsewhere: f.n}], slots_missing: 0},
		"/v1/waits": {rooms: [{room: name, p50: f.seconds}]},
		"/v1/health": {rooms: [{room: name, answers: {count: f.n, failed_percent: f.rate / 50, p50_seconds: f.seconds / 10, p95_seconds: f.seconds, p99_seconds: f.seconds}}]},
		"/history": {samples: [], time: [1.8e9], queued_max: [f.n], on_site_max: [f.n]},
		"/report": {advice: []},
		"": {total_active_users: f == few ? 2 * f.n : f.n, // as many as are inside, or half of them
			new_users_per_minute: 0, message: "", messages: [], events: []},
	});
	const of = (f, code) => {
		const all = structuredClone(state);
		for (const r of all.rooms) {
			Object.assign(r, {queued: f.n, called: f.n, active: f.n, admitted_per_minute: f.rate, estimated_wait_seconds: f.seconds});
			Object.assign(r.why, {code, level: "queued", queued: f.n, inside: 2 * f.n, total_active_users: f.n, new_users_per_minute: f.n, admitted_per_minute: f.rate});
		}
		return all;
	};
	const boxes = async (make, f, code) => {
		window.fetch = async path => Response.json(Object.entries(kept(f)).find(([part]) => path.includes(part))[1]);
		const memory = new Memory(), view = make(memory), all = of(f, code);
		memory.add(all);
		document.getElementById("main").replaceChildren(...view.e);
		const known = () => [...document.querySelectorAll(".peak, #answers ~ p, .foretold")].every(e => e.checkVisibility() && e.textContent) && [...document.querySelectorAll(".figure dd span")].every(e => e.textContent != "–");
		for (view.show(all); !known(); view.show(all)) await new Promise(done => setTimeout(done, 10));
		const at = [...document.querySelectorAll("main :is(a, button, input, textarea, summary)")].filter(e => e.checkVisibility()).map(e => {
			const box = e.getBoundingClientRect();
			return (e.id || e.textContent) + " at " + Math.round(box.left) + ", " + Math.round(box.top + scrollY);
		});
		view.end();
		return at;
	};
	const different = [];
	for (const make of [() => overview(), memory => room(name, memory)]) {
		const before = await boxes(make, few, "limit");
		for (const code of ["limit", "rate", "calling", "over_limit"]) {
			const now = await boxes(make, many, code);
			different.push(...before.flatMap((at, i) => at == now[i] ? [] : [code + ": " + at + ", then " + now[i]]));
		}
		if (!before.length) different.push("nothing to press");
	}
	return different.join("\n");
})()`

// Whatever they look at it with, it fits, nothing in it is hard to read, and nothing that
// somebody is about to press moves when figures come.
func TestTheDashboardInEveryBrowser(t *testing.T) {
	shop := demo(t)
	guests(t, shop, 5, 2)
	for look, options := range map[string][]chromedp.Action[chromedp.Void]{
		"light": {},
		"dark":  {inDark(), chromedp.EmulateViewport(1280, 960)},
		"phone": {onPhone()},
		"night": {onPhone(), inDark()},
		"wall":  {chromedp.EmulateViewport(2560, 1440)},
	} {
		t.Run(look, func(t *testing.T) {
			p := newPerson(t, options...)
			for _, at := range []string{"", "#shop", "#nowhere"} {
				p.open(adminOf(t, shop) + "/" + at)
				p.do("load it anew", chromedp.Reload())
				p.until("news", "live.className == 'live on'")
				p.picture("at" + at)
				p.isAccessible("at " + at)
				wide, err := eval[bool](p, "document.documentElement.scrollWidth > innerWidth")
				if err != nil || wide {
					t.Errorf("%s: the page is wider than the window (%v)", at, err)
				}
				if at != "#shop" {
					continue
				}
				if what, err := evalWithin[string](p, patience, moved); err != nil || what != "" {
					t.Errorf("moves under the pointer (%v):\n%s", err, what)
				}
			}
		})
	}
}

// What the page says that a limit will do is arithmetic, and can be done by hand:
// sessions of two minutes, so half of those inside go within a minute, or, of a full
// room, as many as who joins now is told that the line takes.
func TestTheForecastOfALimit(t *testing.T) {
	p := newPerson(t)
	p.open(adminOf(t, demo(t)) + "/")
	for _, c := range []struct {
		room        string // beside sessions of two minutes
		limit, rate int
		want        string // seconds without a call, seconds of wait, people a minute
	}{
		{"active: 0, called: 0, queued: 0, estimated_wait_seconds: 0, why: {total_active_users: 10}", 10, 0, "0 0 5"},
		{"active: 10, called: 0, queued: 20, estimated_wait_seconds: 240, why: {total_active_users: 10}", 10, 0, "0 240 5"},
		{"active: 8, called: 2, queued: 20, estimated_wait_seconds: 60, why: {total_active_users: 10}", 10, 0, "0 60 20"},   // as the room shows
		{"active: 8, called: 1, queued: 20, estimated_wait_seconds: 57, why: {total_active_users: 10}", 10, 0, "0 57 20"},   // a slot is free for a moment
		{"active: 10, called: 0, queued: 20, estimated_wait_seconds: 240, why: {total_active_users: 10}", 20, 0, "0 60 10"}, // ten at once
		{"active: 10, called: 0, queued: 20, estimated_wait_seconds: 240, why: {total_active_users: 10}", 20, 4, "0 300 4"}, // all by the rate
		{"active: 10, called: 0, queued: 4, estimated_wait_seconds: 48, why: {total_active_users: 10}", 5, 0, "83 179 2.5"}, // ln 2 / 0.5 minutes until half have gone
		{"active: 10, called: 0, queued: 4, estimated_wait_seconds: 48, why: {total_active_users: 10}", 0, 0, "Infinity Infinity 0"},
		{"active: 0, called: 0, queued: 4, estimated_wait_seconds: 0, why: {total_active_users: 10}", 0, 0, "0 Infinity 0"},
	} {
		got, err := eval[string](p, fmt.Sprintf(`import('/assets/predict.js').then(m => {
			const f = m.predict({session_seconds: 120, %s}, %d, %d);
			return [Math.round(f.drain), Math.round(f.wait), f.flow].join(' ');
		})`, c.room, c.limit, c.rate))
		if err != nil || got != c.want {
			t.Errorf("%s, limit %d, rate %d: %q (%v); want %q", c.room, c.limit, c.rate, got, err, c.want)
		}
	}
}
