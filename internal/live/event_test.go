package live

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/anteroom/anteroom/gateway"
)

var guests = flag.Int("guests", 500, "how many come to the event of TestEventWithADraw")

// An event, from doors that are shut to doors that are shut: in a room that lets
// nobody in, people gather while the pre-queue lasts, nobody gets in before
// the start, then everybody does in the order of a draw that was committed to
// before, the limit holds, and after the end nobody joins any more.
func TestEventWithADraw(t *testing.T) {
	t.Parallel()
	people, limit := *guests, *guests/5
	c := newCluster(t, limit)
	now := time.Now().UTC()
	gather, start, end := now.Add(10*time.Second), now.Add(20*time.Second), now.Add(52*time.Second)
	c.room = fmt.Sprintf(`    queueing_method: reject
    events:
      - {name: sale, prequeue_start_time: %s, event_start_time: %s, event_end_time: %s, shuffle_at_event_start: true, queueing_method: fifo}
`, gather.Format(time.RFC3339Nano), start.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano))
	c.run(3)
	for _, p := range c.nodes {
		if a := p.visit("join", nil); a.State != "" {
			t.Errorf("%s: before the pre-queue somebody is %s", p.id, a.State)
		}
	}
	<-time.After(time.Until(gather.Add(time.Second)))
	crowd, done := c.crowd(people, 4*time.Second, time.Second, 1)
	probe, before := c.nodes[1].take("join", "")
	if probe == "" || before == nil || before.Commitment == "" || before.Seed != "" {
		t.Fatalf("a visitor in the pre-queue is told of the draw: %+v", before)
	}
	c.until("everybody gathered", time.Until(start), func() bool { return crowd.Counts().Joined == int64(people) })
	c.stays("nobody is in before the start", time.Until(start)-200*time.Millisecond, func() bool { return crowd.Counts().OnSite+crowd.Counts().Done == 0 })

	var after *gateway.Draw
	c.until("the draw is over and its seed public", 10*time.Second, func() bool {
		_, after = c.nodes[1].take("checkin", probe)
		return after != nil && after.Seed != ""
	})
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%d people were not let in; the first: %v", crowd.Counts().Lost, err)
		}
	case <-time.After(time.Until(end)):
		t.Fatalf("%+v of %d people when the event is over", crowd.Counts(), people)
	}
	n, s := crowd.Counts(), c.shop.Stats()
	c.phase("%d were in, %d at most at once of %d", n.Done, s.Peak, limit)
	if s.Peak > limit || n.Done != int64(people) {
		t.Errorf("%d of %d were in, %d at once, the limit is %d", n.Done, people, s.Peak, limit)
	}
	c.verify(before, after)

	c.until("late-comers are turned away by all nodes", time.Until(end)+3*time.Second, func() bool {
		for _, p := range c.nodes {
			if a := p.visit("join", nil); a.State != "" {
				return false
			}
		}
		return true
	})
	if early := time.Until(end); early > time.Second {
		t.Errorf("the event ended %v early", early)
	}
}

// take asks for something with a ticket, and returns the ticket to go on with and
// what is told of the draw.
func (p *process) take(what, ticket string) (string, *gateway.Draw) {
	p.c.t.Helper()
	b, _ := json.Marshal(map[string]string{"ticket": ticket}) // strings
	if ticket == "" {
		b = nil
	}
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Post(p.gateway()+"/_anteroom/v1/rooms/shop/"+what, "application/json", bytes.NewReader(b))
	if err != nil {
		return ticket, nil
	}
	defer func() { _ = r.Body.Close() }()
	var a struct {
		Ticket string
		Draw   *gateway.Draw
	}
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		p.c.t.Errorf("%s: %s: %v", p.id, what, err)
	}
	return a.Ticket, a.Draw
}

// verify has a visitor check the draw with the script that is for that.
func (c *cluster) verify(before, after *gateway.Draw) {
	c.t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		c.t.Log("NOT RUN: there is no python3 to check the draw with")
		return
	}
	b, _ := json.Marshal(after) // strings and numbers
	if err := os.WriteFile(c.file("draw.json"), b, 0o600); err != nil {
		c.t.Fatal(err)
	}
	logs, _ := filepath.Glob(c.file("*.jsonl"))
	args := append([]string{"../../examples/verify-draw/verify_draw.py", c.file("draw.json"), before.Commitment}, logs...)
	out, err := exec.Command(python, args...).CombinedOutput()
	c.phase("the visitor checks:\n%s", out)
	if err != nil {
		c.t.Errorf("the draw does not check: %v", err)
	}
}
