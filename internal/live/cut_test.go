package live

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var cutFor = flag.Duration("cut", cutShort, "how long a link is cut in TestANodeWithOneBadLinkKeepsItsVisitorsMoving; longer than by default: then another one, one way")

const cutShort = 15 * time.Second

// ownNetwork runs the test in a network of its own, in which it may cut links, and reports
// whether this is the process that does so.
func ownNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	const inside = "ANTEROOM_OWN_NETWORK"
	if os.Getenv(inside) != "" {
		ip(t, "link", "set", "lo", "up")
		// What a rule forbids has to be asked before what is local.
		ip(t, "rule", "add", "pref", "100", "lookup", "local")
		ip(t, "rule", "del", "pref", "0")
		return true
	}
	if out, err := exec.Command("unshare", "-n", "sh", "-c", "ip link set lo up && ip rule add uidrange 1-1 ipproto tcp dport 1 blackhole").CombinedOutput(); err != nil {
		if os.Getenv("ANTEROOM_NO_SKIP") != "" {
			t.Fatalf("a network of its own: %v\n%s", err, out)
		}
		t.Skipf("NOT RUN: a network of its own (Linux, root, unshare and ip): %v: %s", err, out)
	}
	args := slices.DeleteFunc(slices.Clone(os.Args), func(a string) bool {
		return strings.HasPrefix(a, "-test.run=") || strings.HasPrefix(a, "-test.v") || strings.HasPrefix(a, "-test.testlogfile") || strings.HasPrefix(a, "-test.count")
	})
	cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"-n"}, append(args, "-test.run=^"+t.Name()+"$", "-test.v")...)...)
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		t.Log(strings.TrimRight(line, "\n"))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a network of its own: %v", err)
	}
	return false
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// asUser has the node be a user of its own, by whom its traffic is known.
func (p *process) asUser() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid(), Gid: p.uid()}}
}

func (p *process) uid() uint32 { return 20_000 + uint32(slices.Index(p.c.nodes, p)) }

// owns gives the node its file, and a place where it can write its log.
func (p *process) owns(config string) {
	p.c.t.Helper()
	for _, err := range []error{
		os.Chown(config, int(p.uid()), int(p.uid())), os.Chmod(filepath.Dir(p.c.dir), 0o755), os.Chmod(p.c.dir, 0o777), os.Chmod(filepath.Dir(p.c.binary), 0o755),
	} {
		if err != nil {
			p.c.t.Fatal(err)
		}
	}
}

// cutTo has nothing that p sends arrive at the ports of o, or ends that.
func (p *process) cutTo(o *process, cut bool) {
	p.c.t.Helper()
	do := "del"
	if cut {
		do = "add"
	}
	t, _ := p.c.t.(*testing.T)
	for _, proto := range []string{"tcp", "udp"} {
		ip(t, "rule", do, "pref", "10", "uidrange", fmt.Sprintf("%d-%d", p.uid(), p.uid()), "ipproto", proto, "dport", fmt.Sprintf("%d-%d", o.port, o.port+len(ports)-1), "blackhole")
	}
}

// Five nodes, and the link between the one that runs the waves and another one is cut
// under a crowd, both ways, or one. That one is left out, and asks the others for its
// visitors: hardly anybody is overtaken, and everybody gets in.
func TestANodeWithOneBadLinkKeepsItsVisitorsMoving(t *testing.T) {
	t.Parallel()
	if !ownNetwork(t) {
		return
	}
	for _, both := range []bool{true, false} {
		if !both && *cutFor <= cutShort {
			break
		}
		c := newCluster(t, 60)
		c.session, c.users = 5*time.Minute, true
		c.run(5)
		lead, x := c.coordinator()
		stay := 3 * time.Second
		crowd, done := c.crowd(c.limit+int(*cutFor/stay)*c.limit, 8*time.Second, stay, 3)
		c.until("people in line", 20*time.Second, func() bool { return x.room().Queued > 50 })
		x.cutTo(lead, true)
		if both {
			lead.cutTo(x, true)
		}
		c.phase("%s does not reach %s, which runs the waves; both ways: %t", x.id, lead.id, both)
		began := time.Now()
		c.until("waves without it", 10*time.Second, func() bool { return lead.metric("anteroom_members_in_wave") == 4 })
		<-time.After(time.Until(began.Add(*cutFor)))
		if says := x.cluster(); says.Waiting == "" || says.Relay == "" {
			t.Errorf("%s is left out, and says that it waits for %q, and that %q answers for it", x.id, says.Waiting, says.Relay)
		}
		c.phase("%s has had %.0f requests carried out elsewhere", x.id, x.metric("anteroom_requests_relayed_total"))
		x.cutTo(lead, false)
		if both {
			lead.cutTo(x, false)
		}
		c.serving(5)
		err := <-done
		c.fair(crowd, err, 1e-3)
		for _, p := range c.nodes {
			p.kill()
		}
	}
}
