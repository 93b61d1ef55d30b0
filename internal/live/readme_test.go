package live

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// blocks returns the shell blocks of a document that follow a line <!-- ci: name -->.
func blocks(t *testing.T, document, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", document))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range regexp.MustCompile("(?s)<!-- ci: "+regexp.QuoteMeta(name)+" -->\n```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, b[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no block after <!-- ci: %s -->", document, name)
	}
	return all
}

// paste runs blocks of a document as they stand there, one after the other, in the
// directory of the source, on a machine on which all ports are free: a network and
// processes of their own. Each block must end well. leaves is what they would leave
// behind if they failed.
func paste(t *testing.T, blocks []string, within time.Duration, leaves string) (said string) {
	t.Helper()
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	const alone = "unshare -n -p -f --kill-child --mount-proc "
	if err := exec.Command("sh", "-c", alone+"ip link set lo up").Run(); err != nil {
		if os.Getenv("ANTEROOM_NO_SKIP") != "" {
			t.Fatalf("a network of its own: %v", err)
		}
		t.Skipf("NOT RUN: a network of its own (Linux, root, unshare and ip): %v", err)
	}
	leaves = filepath.Join("..", "..", leaves)
	if _, err := os.Stat(leaves); err == nil {
		t.Fatalf("%s is in the way: the blocks make it", leaves)
	}
	t.Cleanup(func() { _ = os.RemoveAll(leaves) })
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", alone+`bash -e -c 'ip link set lo up; . /dev/stdin'`)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = filepath.Join("..", ".."), strings.NewReader(strings.Join(blocks, "\n")), time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, out)
	}
	if _, err := os.Stat(leaves); err == nil {
		t.Errorf("%s is left behind", leaves)
	}
	return string(out)
}

// inOrder fails the test unless text has all of words, one after the other.
func inOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, w := range words {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Fatalf("no %q, or not where it should be:\n%s", w, text)
		}
		rest = after
	}
}

func TestTheTutorial(t *testing.T) {
	t.Parallel()
	said := paste(t, blocks(t, "docs/tutorial.md", "tutorial"), 2*time.Minute, "try-anteroom")
	site := "<h1>my site</h1>\n"
	inOrder(t, said, "node-1 sees 1 node", "suspended: everyone goes through", site, "browse", "room shop: changed", site, site, `"state":"waiting"`,
		"queueing", "total_active_users: 2 -> 5", site, "suspended: false -> true", site)
}

func TestTheReadmesThreeNodes(t *testing.T) {
	t.Parallel()
	said := paste(t, blocks(t, "README.md", "three nodes"), 2*time.Minute, "three-nodes")
	site := "<h1>the site</h1>\n"
	inOrder(t, said, "node-1 sees 3 nodes in wave", "shop", "3        0       0        0", "open\n", site, site, site, `{"room":"shop","state":"waiting"`, `"joined_at":"2`, "kendall_tau", "resize 42")
}

func TestTheFirstRoom(t *testing.T) {
	t.Parallel()
	said := paste(t, blocks(t, "docs/README.md", "first room"), 2*time.Minute, "first-room")
	inOrder(t, said, "sees 1 node", "<h1>my site</h1>\n", `"state":"waiting"`, "site      1        1       0        1")
}
