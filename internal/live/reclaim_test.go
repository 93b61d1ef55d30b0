package live

import (
	"strings"
	"testing"
	"time"
)

// A room whose sides go on with what they have waits for a node that died until
// somebody says that it will not return; then all of the limit is there again. One
// that took its leave is not waited for.
func TestAnOperatorGivesUpANode(t *testing.T) {
	c := newCluster(t, 30)
	c.room = "    on_partition: share\n"
	c.run(3)
	a, dead, left := c.nodes[0], c.nodes[1], c.nodes[2]
	c.until("shares", 15*time.Second, func() bool { return dead.room().Here.SlotsOwned > 0 })
	left.signal(15)
	c.until("the end of the one that leaves", 20*time.Second, func() bool { return !left.running() })
	c.until("all of the limit with the others", 20*time.Second, func() bool { return c.slots() == 30 })
	if code, _, said := c.command("rooms", "reclaim", dead.id, "--admin", "http://"+a.at(1)); code != 1 || !strings.Contains(said, "node_alive") {
		t.Errorf("a node that runs is given up: exit code %d, %q", code, said)
	}
	dead.kill()
	c.until("waiting for the dead one", 15*time.Second, func() bool { return strings.Join(a.room().WaitsFor, " ") == dead.id })
	had := a.room().Here.SlotsOwned
	c.stays("what it has", 3*time.Second, func() bool { return a.room().Here.SlotsOwned == had && had < 30 })
	if code, said, _ := c.command("rooms", "reclaim", dead.id, "--admin", "http://"+a.at(1)); code != 0 || said != "node "+dead.id+": no longer waited for in shop\n" {
		t.Errorf("reclaim: exit code %d, %q", code, said)
	}
	c.until("no waiting", 10*time.Second, func() bool { return len(a.room().WaitsFor) == 0 })
	c.until("all of the limit", 40*time.Second, func() bool { return a.room().Here.SlotsOwned == 30 })
}
