package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const toldFile = rigFile + `
notifications: [{name: pager, url: %q, secret: whsec_%s, events: [queueing.began, queueing.ended, node.lost, node.back, majority.lost, majority.back]}]
notification_thresholds: {queueing: 1s, node_lost: 1s, majority_lost: 1s, settle: 2s}
`

// heardOf are the types of what came, each ID once.
func (p *pager) heardOf() (types []string) {
	got, _ := p.notifications()
	var ids []string
	for _, n := range got {
		if !slices.Contains(ids, n.ID) {
			ids, types = append(ids, n.ID), append(types, n.Type)
		}
	}
	return types
}

// TestAQueueAndALostNodeAreToldOnce: whichever node runs the waves, each turn comes
// under one ID, and while all nodes are there in one piece.
func TestAQueueAndALostNodeAreToldOnce(t *testing.T) {
	r := newRig(t, 2)
	p := &pager{}
	hook := httptest.NewServer(p)
	t.Cleanup(hook.Close)
	file := fmt.Sprintf(toldFile, r.origin.URL, 2, hook.URL, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	for range 3 {
		r.startWith(file, 3, 0)
	}
	r.serving()
	for range 2 {
		r.nodes[0].enter("")
	}
	ticket := r.nodes[1].visit("join", "", "").Ticket
	comes := func(types ...string) {
		t.Helper()
		r.until(fmt.Sprint(types), 40*time.Second, func() bool { return slices.Equal(p.heardOf(), types) })
	}
	comes("queueing.began")

	leads := slices.IndexFunc(r.nodes, func(m *member) bool { return m.Snapshot().Status.Leading })
	gone := r.nodes[leads]
	gone.cut.Store(true)
	r.phase("%s ran the waves, and is cut off", gone.id)
	r.until("word of both sides", 40*time.Second, func() bool {
		types := p.heardOf()
		return slices.Contains(types, "node.lost") && slices.Contains(types, "majority.lost")
	})
	gone.mend()
	r.until("word that both are well", 40*time.Second, func() bool {
		types := p.heardOf()
		return slices.Contains(types, "node.back") && slices.Contains(types, "majority.back")
	})
	for _, m := range r.nodes {
		if m.visit("abandon", "ticket", ticket).Status == 204 {
			break
		}
	}
	r.until("the end of the queue", 40*time.Second, func() bool { return slices.Contains(p.heardOf(), "queueing.ended") })
	types := p.heardOf()
	slices.Sort(types)
	if want := []string{"majority.back", "majority.lost", "node.back", "node.lost", "queueing.began", "queueing.ended"}; !slices.Equal(types, want) {
		t.Errorf("it came to %v, want each of %v once", types, want)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wrong) > 0 {
		t.Errorf("not signed as they should be: %q", p.wrong)
	}
}
