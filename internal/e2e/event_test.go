package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// adminOf is the admin port of a demo's first node.
func adminOf(t *testing.T, shop string) string {
	t.Helper()
	u, err := url.Parse(shop)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", port+3) // after the ports of three nodes
}

// operate changes the room of a demo at its admin port.
func operate(t *testing.T, shop, change string) {
	t.Helper()
	at := adminOf(t, shop) + "/v1/rooms/shop"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, at, strings.NewReader(change))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted { // on its way: it comes with a later wave
		t.Fatalf("%s: %s", change, resp.Status)
	}
}

// Somebody comes before an event, sees the time run, and is in after the start.
func TestSomebodyComesToAnEvent(t *testing.T) {
	shop := demo(t)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	gather := at(-time.Second)
	opensIn := func(d time.Duration) {
		operate(t, shop, fmt.Sprintf(`{"events":[{"name":"sale","prequeue_start_time":%q,"event_start_time":%q,"event_end_time":%q,"shuffle_at_event_start":true}]}`,
			gather, at(d), at(time.Hour)))
	}
	opensIn(time.Minute)
	o := newPerson(t)
	o.open(adminOf(t, shop) + "/#shop")
	o.sees("Event sale")
	p := newPerson(t)
	p.open(shop + "/")
	p.until("the countdown", "!doors.hidden && timer.textContent.startsWith('00:00:') && place.parentNode.hidden")
	p.until("the commitment", "[...document.querySelectorAll('details textarea')].some(a => /^[0-9a-f]{64}$/.test(a.value))")
	p.picture("countdown")
	p.isAccessible("countdown")
	p.until("the seed to be kept back", "seed.value === ''")
	opensIn(4 * time.Second)
	p.sees("The new harvest is here")

	// From the event its operator comes to how it was, and to the next one.
	o.click("#event ~ p a")
	o.until("the charts of that time", "location.hash.startsWith('#shop?from=') && document.querySelectorAll('.chart canvas').length === 6")
	o.sees("1 joined, 1 got in")
	o.picture("how it has been")
	local := func(d time.Duration) string { return time.Now().Add(d).Format("2006-01-02T15:04:05") }
	o.types("#event-name", "encore")
	o.types("#event-gather", local(2*time.Hour))
	o.types("#event-opens", local(3*time.Hour))
	o.types("#event-ends", local(2*time.Hour)) // a slip
	o.presses("#schedule button:not([type])", "Schedule the event")
	o.sees("Schedule the event: nothing was changed. events[1].event_end_time")
	o.types("#event-ends", local(4*time.Hour))
	o.presses("#schedule button:not([type])", "Schedule the event")
	o.sees("Schedule the event: In force")
	o.until("both events", `[...document.querySelectorAll("#schedule li")].map(e => e.textContent.includes("sale") || e.textContent.includes("encore")).join() === "true,true"`)
	o.picture("another event")

	// The one that runs can be made longer or shorter, and ended. What it has been stays.
	o.click("#schedule li button")
	o.until("what of it can be changed", `[...document.querySelectorAll("#schedule input:not(:disabled)")].map(e => e.id).join() === "event-ends,event-limit,event-rate"`)
	o.sees("Its end and its limits can be changed.")
	o.picture("edit")
	o.isAccessible("edit")
	o.types("#event-ends", local(90*time.Minute))
	o.types("#event-limit", "30")
	o.presses("#schedule button:not([type])", "Change the event")
	o.sees("Change the event: In force")
	o.sees("The event sale has a limit of its own until")
	o.sees("Their order was drawn, and the seed is public. Limit 30.")
	o.sees("of 30")
	o.presses("#schedule li button:last-child", "End the event")
	o.sees("End the event: In force")
	o.sees("Event encore")
	o.until("the event to be over", `document.querySelector("#over ~ ul").textContent.includes("sale") && document.querySelector("#schedule li").textContent.includes("Remove")`)
	o.sees("of 5")
	o.isAccessible("another event")
	o.presses("#schedule li:nth-of-type(2) button:last-child", "Remove the event")
	o.until("one event", `document.querySelectorAll("#schedule li").length === 1`)
}
