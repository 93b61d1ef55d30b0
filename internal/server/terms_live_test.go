package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
)

// bareFile says where a node listens, and nothing of its cluster.
const bareFile = `
node: {gateway: "127.0.0.1:0", admin: "127.0.0.1:0", peer: "127.0.0.1:0", grpc: none, gossip: "127.0.0.1:0"%s}
`

// readyz returns what a load balancer is told.
func (m *member) readyz() (status int, text string) {
	m.r.t.Helper()
	a, err := http.Get("http://" + m.Addresses().Admin + "/readyz")
	if err != nil {
		m.r.t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		m.r.t.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(b))
}

// A node with a period of its own takes no part, and everybody is told why. It
// does not lead a newcomer astray either: that takes over the cluster's settings,
// by which the limit holds, and its own are on disk before it acts by them.
func TestNodeWithOtherSettingsIsLeftOutAndOneWithoutAdopts(t *testing.T) {
	r := newRig(t, 4)
	a, b, c := r.three()
	stray := r.startWith(strings.Replace(fmt.Sprintf(rigFile, r.origin.URL, r.limit), "lease: 4s", "lease: 4s, period: 1s", 1), 0, 0)
	const why = "cluster.period is 200ms at node-1 and 1s at node-4; give all nodes the same `cluster:` settings"
	r.phase("start %s with a period of 1 s", stray.id)
	r.until("it knows why it waits", 10*time.Second, func() bool {
		return strings.HasPrefix(stray.cluster().Waiting, "waiting for a cluster to join: cluster.period is 200ms at node-")
	})
	data := filepath.Join(t.TempDir(), "data")
	bare := r.startWith(fmt.Sprintf(bareFile, ", data: "+data), 0, 0)
	r.phase("start %s without any settings", bare.id)
	r.until("waves of four of five", 20*time.Second, func() bool {
		return a.sees(5, 4) && b.sees(5, 4) && c.sees(5, 4) && bare.sees(5, 4)
	})
	r.stays("they go on without the stray", 3*time.Second, func() bool { return a.sees(5, 4) && stray.cluster().Waiting != "" })
	for _, m := range []*member{a, b, c, bare} {
		m.enter("")
	}
	if status, text := stray.readyz(); status != http.StatusServiceUnavailable || text != "waiting for a cluster to join: "+why {
		t.Errorf("/readyz of the stray: %d %s", status, text)
	}
	if s := stray.visit("join", "", ""); s.Status != http.StatusServiceUnavailable {
		t.Errorf("join at the stray = %+v", s)
	}
	for _, m := range []*member{a, stray} {
		if n := strings.Count(m.log.String(), `msg="a node with other settings is left out"`); n == 0 || n > 4 || !strings.Contains(m.log.String(), why) {
			t.Errorf("the log of %s does not tell why, or %d times:\n%s", m.id, n, m.log.String())
		}
	}
	if s := bare.cluster(); s.Lease > 4 || s.Lease <= 0 || !strings.Contains(bare.log.String(), `msg="taking over the cluster's settings"`) {
		t.Errorf("%s has a lease of %v s; want that of the cluster, and a line in the log", bare.id, s.Lease)
	}
	kept, err := os.ReadFile(filepath.Join(data, "cluster.json"))
	if err != nil || !strings.Contains(string(kept), fmt.Sprint(4*time.Second.Nanoseconds())) {
		t.Errorf("on disk there is %s, %v; want the settings that were taken over", kept, err)
	}
	r.withinLimit()
}

// Nodes without settings that have long tried waves among themselves found a
// cluster with the one that knows the settings, as soon as it comes.
func TestNodesWithoutSettingsFoundAClusterWithOneThatHasSome(t *testing.T) {
	r := newRig(t, 3)
	file := strings.Replace(fmt.Sprintf(rigFile, r.origin.URL, r.limit), "cluster: {lease: 4s}", "", 1)
	first := r.startWith(strings.Replace(file, "node: {", `node: {join: ["127.0.0.1:1"], `, 1), 3, 0)
	second := r.startWith(file, 3, 0)
	r.until("two that know each other", 10*time.Second, func() bool { return len(second.cluster().Members) == 2 })
	r.stays("no cluster", 2*time.Second, func() bool { return first.cluster().Waiting == "waiting for 3 nodes to start a cluster together" })
	third := r.start(3, 0)
	r.phase("start %s, which has settings", third.id)
	r.serving()
	for _, m := range []*member{first, second} {
		if s := m.cluster(); s.Lease > 4 {
			t.Errorf("%s has a lease of %v s, want that of %s", m.id, s.Lease, third.id)
		}
		m.enter("")
	}
	if log := third.log.String(); strings.Contains(log, "with other settings") {
		t.Errorf("%s warns of nodes that have only to take over its settings:\n%s", third.id, log)
	}
}

// A side without a quorum honours passes and keeps places: a load balancer that
// took it out would throw out people who are in. The loss is in the log.
func TestSideWithoutAQuorumIsReady(t *testing.T) {
	r := newRig(t, 3)
	_, b, alone := r.three()
	pass := alone.enter("")
	if status, text := alone.readyz(); status != http.StatusOK {
		t.Fatalf("/readyz: %d %s", status, text)
	}
	alone.cut.Store(true)
	r.phase("cut the links of %s", alone.id)
	r.until("side without a quorum", 15*time.Second, func() bool { return alone.cluster().Waiting == "on a side without a quorum" })
	r.stays("it is ready and lets in whoever has a pass", 3*time.Second, func() bool {
		status, _ := alone.readyz()
		return status == http.StatusOK && alone.browse(http.MethodGet, "/", pass) == http.StatusOK
	})
	if log := alone.log.String(); !strings.Contains(log, `msg="nobody is called here; places and passes are kept"`) || !strings.Contains(log, "on a side without a quorum") {
		t.Errorf("the log does not tell of it:\n%s", log)
	}
	if status, _ := b.readyz(); status != http.StatusOK {
		t.Errorf("/readyz of the others: %d", status)
	}
	alone.mend()
	r.serving()
	r.until("line in the log", 5*time.Second, func() bool { return strings.Contains(alone.log.String(), `msg="people are called again"`) })
}

// A node that has another room in its file than the cluster says so, once, and
// takes the file's when told.
func TestFileThatDiffersFromTheClusterIsToldOf(t *testing.T) {
	r := newRig(t, 3)
	a, _, same := r.three()
	file := fmt.Sprintf(rigFile, r.origin.URL, 2)
	other := r.startWith(file, 0, 0)
	r.serving()
	const text = "the cluster has this room otherwise than this node's file"
	r.until("line in the log", 5*time.Second, func() bool { return strings.Contains(other.log.String(), text) })
	r.stays("it is told once, and only there", 2*time.Second, func() bool {
		return strings.Count(other.log.String(), text) == 1 && !strings.Contains(a.log.String()+same.log.String(), text)
	})
	f := config.Parse("test", []byte(file), config.Options{Host: "x"})
	if err := other.SetRooms(f.Config.Rooms); err != nil {
		t.Fatal(err)
	}
	r.until("the file's limit", 5*time.Second, func() bool {
		rs, ok := a.Snapshot().Room("shop")
		return ok && rs.Room.Target == 2
	})
}
