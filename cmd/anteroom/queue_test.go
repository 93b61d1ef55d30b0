package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/anteroom/anteroom/internal/tokens"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	"github.com/anteroom/anteroom/proto/auth"
	"github.com/anteroom/anteroom/proto/rpc"
)

func TestQueueCommands(t *testing.T) {
	n := &queueNode{leases: []*anteroomv1.Lease{lease("a"), lease("b"), lease("c"), lease("d"), lease("e")}}
	ask := n.asking(t)
	var b strings.Builder
	for _, args := range [][]string{
		{"put", "--id", "new", "--priority", "5", "resize 42"},
		{"put", "--id", "new", "--delay", "10m", "--ttl", "1h", "--json", "x"},
		{"put", "--id", "old", "--not-before", "2026-12-24T18:00:00Z", "x"},
		{"put", "--id", "keyed", "--key", "customer 7", "x"},
		{"take", "--max", "2"},
		{"take", "--json", "--lease", "5m"},
		{"take", "--queue", "split"},
		{"take", "--queue", "split", "--json"},
		{"take"},
		{"take", "--queue", "held"},
		{"ack", "r-a", "late", "r-b"},
		{"nack", "r-c", "--delay", "10s", "--reason", "no disk", "--json"},
		{"nack", "r-c"},
		{"nack", "r-c", "--delay", "0s"},
		{"extend", "r-c", "--lease", "5m"},
		{"peek"},
		{"peek", "--json"},
		{"peek", "--queue", "failed"},
		{"peek", "--queue", "failed", "--json"},
		{"len"},
		{"len", "--json"},
		{"len", "--queue", "nope"},
		{"position", "a", "b", "c", "d", "e"},
		{"position", "b", "c", "--json"},
		{"update", "a", "--priority", "9"},
		{"update", "a", "--payload", "resize 43", "--delay", "10m"},
		{"update", "a", "--priority", "0", "--payload", ""},
		{"update", "a", "--delay", "0s", "--not-before", "2026-12-24T18:00:00Z"},
		{"update", "a"},
		{"cancel", "a", "b"},
		{"pause"},
		{"resume", "--json"},
		{"drain"},
		{"purge"},
		{"purge", "--json"},
		{"set"},
		{"set", "--json"},
		{"set", "--max-items", "0", "--lease", "1m", "--dead-letter-queue", "failed", "--backoff-base", "5s", "--backoff-factor", "3", "--backoff-max", "1h", "--max-in-flight", "3", "--exclusive-keys", "true", "--fair-keys", "true"},
		{"set", "--interval", "0s", "--json"},
		{"set", "--max-items", "-1", "--lease", "soon", "--exclusive-keys", "perhaps"},
		{"stats", "--queue="},
		{"stats"},
		{"stats", "--json"},
		{"watch"},
		{"watch", "--json"},
		{"dead", "list", "--max", "1"},
		{"dead", "list"},
		{"dead", "requeue", "x"},
		{"dead", "delete", "--all"},
		{"dead", "delete"},
		{"put", "--queue", "shut", "x"},
		{"put", "--queue", "full", "x"},
		{"put", "--priority", "-1", "--delay", "soon", "--not-before", "noon", "x"},
		{"put", "--delay", "1s", "--not-before", "2026-12-24T18:00:00Z", "x"},
		{"put", "a", "b"},
		{"put", "--lines", "a"},
		{"len", "--queue="},
		{"len", "--node", "nowhere"},
		{"len", "--ca", "nope.pem"},
		{"ack"},
		{"work", "--", "no-such-command-anywhere"},
		{"work"},
		{"pauze"},
	} {
		full := append([]string{"queue"}, args...)
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--queue") }) && args[0] != "pauze" {
			full = slices.Insert(full, 2+sub(args), "--queue", "jobs")
		}
		stdout, stderr, code := ask(t.Context(), full...)
		fmt.Fprintf(&b, "$ anteroom %s\n%s%s", quoted(full), stdout, stderr)
		if code != 0 {
			fmt.Fprintf(&b, "(exit code %d)\n", code)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "The node was asked to\n%s\n", strings.Join(n.said, "\n"))
	golden(t, "queue", b.String())
}

// sub is 1 for commands of two words.
func sub(args []string) int {
	if args[0] == "dead" {
		return 1
	}
	return 0
}

func quoted(args []string) string {
	words := slices.Clone(args)
	for i, a := range words {
		if strings.Contains(a, " ") {
			words[i] = "'" + a + "'"
		}
	}
	return strings.Join(words, " ")
}

func TestQueuePutReadsStandardInput(t *testing.T) {
	for _, c := range []struct {
		stdin, flag string
		code        int
		want        []string
	}{
		{"a letter\nof two lines", "", 0, []string{`put "a letter\nof two lines" priority 0 not before 0 ttl 0s`}},
		{"one\ntwo\n", "--lines", 0, []string{"put a batch of 1", `put "one" priority 0 not before 0 ttl 0s`, "put a batch of 1", `put "two" priority 0 not before 0 ttl 0s`}},
		{"one\n", "--lines --key k", 0, []string{"put a batch of 1", `put "one" priority 0 not before 0 ttl 0s key k`}},
		{"one\ntwo\nthree", "--lines --batch 2", 0, []string{"put a batch of 2", `put "one" priority 0 not before 0 ttl 0s`, `put "two" priority 0 not before 0 ttl 0s`, "put a batch of 1", `put "three" priority 0 not before 0 ttl 0s`}},
		{"bad\ntwo\nthree", "--lines --batch 2", 1, []string{"put a batch of 2", `put "bad" priority 0 not before 0 ttl 0s`, `put "two" priority 0 not before 0 ttl 0s`}},
		{strings.Repeat("x", stdinMax+1), "--json", 1, nil},
		{strings.Repeat("x", stdinMax+1), "--lines", 1, nil},
	} {
		n := &queueNode{}
		ask := n.asking(t)
		file := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(file, []byte(c.stdin), 0o600); err != nil {
			t.Fatal(err)
		}
		stdin := os.Stdin
		var err error
		if os.Stdin, err = os.Open(file); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := ask(t.Context(), append([]string{"queue", "put", "--queue", "jobs"}, strings.Fields(c.flag)...)...)
		_ = os.Stdin.Close()
		os.Stdin = stdin
		if code != c.code || !slices.Equal(n.said, c.want) {
			t.Errorf("%.20q %s: exit code %d, asked %q; %s", c.stdin, c.flag, code, n.said, stderr)
		}
	}
}

func TestQueueWorkRunsACommandForEachItem(t *testing.T) {
	n := &queueNode{leases: []*anteroomv1.Lease{lease("good"), lease("bad")}, nacked: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-n.nacked
		cancel()
	}()
	script := `read line; echo "$line, $1, $ANTEROOM_ITEM_ID, $ANTEROOM_ITEM_PRIORITY, $ANTEROOM_ITEM_ATTEMPTS"; test $ANTEROOM_ITEM_ID = good`
	stdout, stderr, code := n.asking(t)(ctx, "queue", "work", "--queue", "jobs", "--again", "2s", "--", "sh", "-c", script, "sh", "<{}>")
	if want := "resize good, <resize good>, good, 5, 1\nresize bad, <resize bad>, bad, 5, 1\n"; code != 0 || stdout != want {
		t.Errorf("exit code %d, output %q, want %q", code, stdout, want)
	}
	if want := []string{"ack r-good", `nack r-bad 2s "exit status 1"`}; !slices.Equal(n.said, want) {
		t.Errorf("asked %q, want %q", n.said, want)
	}
	if !strings.Contains(stderr, "item=bad") || !strings.Contains(stderr, "exit status 1") {
		t.Errorf("errors %s", stderr)
	}
}

// A node that asks for tokens, and what the program says about it.
func TestQueueCommandsSayWhatIsWrongWithTheToken(t *testing.T) {
	inDir(t, map[string]string{"empty": "\n"})
	secret := tokens.New()
	h, _ := tokens.HashOf(secret)
	guard := rpc.NewGuard(tokens.NewSet([]tokens.Token{{Name: "worker", Hash: h, May: tokens.RightsOf(tokens.Take), Queues: []string{"jobs"}}}), slog.New(slog.DiscardHandler))
	server, _ := rpc.NewServer(rpc.Config{PriorityQueue: &queueNode{leases: []*anteroomv1.Lease{lease("a"), lease("b"), lease("c")}}, Guard: guard})
	l := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	if err := os.WriteFile("worker.token", []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, variable string
		code           int
		want           string
	}{
		{"take --queue jobs", "", 1, "(token_required); give --token-file or ANTEROOM_TOKEN"},
		{"take --queue jobs", tokens.New(), 1, "(token_invalid); give"},
		{"take --queue jobs", secret, 0, ""},
		{"take --queue jobs --token " + secret, tokens.New(), 0, ""},
		{"take --queue jobs --token-file worker.token", "", 0, ""},
		{"put --queue jobs x", secret, 1, "the token worker may not do this: it takes put in its may (not_allowed)"},
		{"take --queue other", secret, 1, "the token worker may not use this queue"},
		{"stats", secret, 1, "may not use all queues: name one"},
		{"take --queue jobs --node 10.0.0.1:7002", secret, 2, "without TLS, in which others could read it; give --ca or --tls"},
		{"take --queue jobs --token a --token-file b", "", 2, "give one of them"},
		{"take --queue jobs --token-file empty", "", 1, "empty is empty; name the file"},
		{"take --queue jobs --token-file none", "", 1, "anteroom keys token --out"},
		{"take --queue jobs", "two words", 2, "the token: empty, or with a space"},
	} {
		t.Setenv("ANTEROOM_TOKEN", c.variable)
		var out, errs bytes.Buffer
		p := &program{stdout: &out, stderr: &errs, now: time.Now}
		p.dialer = func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
		code := exitCode(p.run(t.Context(), append([]string{"queue"}, strings.Fields(c.args)...)))
		if code != c.code || !strings.Contains(errs.String(), c.want) || strings.Contains(out.String()+errs.String(), secret) {
			t.Errorf("%s: exit code %d, errors %q; want %d, %s", c.args, code, errs.String(), c.code, c.want)
		}
	}
}

// Who calls the port of the nodes, as programs once did, hears where to go.
func TestQueueCommandsAtThePeerPortSayWhereToGo(t *testing.T) {
	policy, err := auth.GossipKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewPeers(rpc.PeersConfig{Policy: policy})
	l := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, now: time.Now}
	p.dialer = func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
	code := exitCode(p.run(t.Context(), []string{"queue", "put", "--queue", "jobs", "--node", "10.0.0.1:7001", strings.Repeat("x", 60<<10)}))
	if text := errs.String(); code != 1 || !strings.Contains(text, "programs call node.grpc of the same node") || strings.Count(text, "\n") != 1 {
		t.Errorf("exit code %d, errors %q", code, text)
	}
}
