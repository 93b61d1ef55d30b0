package gateway_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/gateway"
)

// say gives the shop's people something to read.
func (w *world) say(always string, timed ...gateway.Message) {
	w.t.Helper()
	if err := w.SetRooms([]gateway.Room{{Name: "shop", Routes: []gateway.Route{{}}, Message: always, Messages: timed}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) at(d time.Duration) *time.Time {
	at := time.UnixMicro(w.Clock()).UTC().Add(d)
	return &at
}

// messages reads the next event that is of them.
func (l *listener) messages() (all []gateway.Message) {
	l.t.Helper()
	kind, data := l.next()
	for kind == "" && data != "" { // how the place stands, which is told every few seconds
		kind, data = l.next()
	}
	if err := json.Unmarshal([]byte(data), &all); err != nil || kind != "messages" {
		l.t.Fatalf("event %q %q: %v", kind, data, err)
	}
	return all
}

// What an operator says is read at once by whoever listens. A message for later
// comes when its time is there.
func TestMessagesReachAnOpenStream(t *testing.T) {
	w := newWorld(t, nil, shop())
	w.join()
	p := w.join()
	if p.Messages != nil {
		t.Errorf("a room without messages says %v", p.Messages)
	}
	l := w.listen(t, "?ticket="+p.Ticket)
	l.place()
	first := gateway.Message{At: w.at(-time.Minute), Text: "We open at <ten>."}
	w.say("", first)
	if diff := cmp.Diff([]gateway.Message{first}, l.messages()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	later := gateway.Message{At: w.at(time.Second), Text: "Open."}
	w.say("Sold out: Assam", first, later)
	always := gateway.Message{Text: "Sold out: Assam"}
	if diff := cmp.Diff([]gateway.Message{always, first}, l.messages()); diff != "" {
		t.Errorf("before the time of one (-want +got):\n%s", diff)
	}
	w.pass(time.Second)
	if diff := cmp.Diff([]gateway.Message{always, later, first}, l.messages()); diff != "" {
		t.Errorf("then (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]gateway.Message{always, later, first}, w.place(200, "checkin", with("ticket", p.Ticket)).Messages); diff != "" {
		t.Errorf("a check-in (-want +got):\n%s", diff)
	}
	w.say("")
	if all := l.messages(); len(all) > 0 {
		t.Errorf("taken back, and there is %v", all)
	}
}
