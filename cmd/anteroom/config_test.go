package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inDir writes files into a directory of their own and makes it the current
// one, until back.
func inDir(t *testing.T, files map[string]string) (back func()) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func() { t.Chdir(here) }
}

const goodConfig = `
node: {id: node-1, data: data}
rooms:
  - {name: shop, total_active_users: 200}
  - {name: desk, total_active_users: 5}
`

// testKey proves membership among the nodes of a test.
const testKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

const badConfig = `
node:
  id: node-1
  gatway: 0.0.0.0:8080
  expect: 3
security:
  admin_token: opensesame
cluster: {lease: 3s}
rooms:
  - name: shop
    total_active_users: many
`

func TestConfigCheckSaysWhatANodeWillDo(t *testing.T) {
	inDir(t, map[string]string{
		"a.yaml": goodConfig,
		"b.yaml": "node: {id: b, data: d, join: [127.0.0.1:7946]}\nsecurity: {gossip_key: " + testKey + "}\nrooms: [{name: a, total_active_users: 1}]",
		"c.yaml": "node: {id: c, data: d, join: [127.0.0.1:7946], expect: 3}\nsecurity: {gossip_key: " + testKey + "}\nrooms: [{name: a, total_active_users: 1}, " +
			"{name: b, total_active_users: 1}, {name: c, total_active_users: 1}, {name: d, total_active_users: 1}]",
	})
	for file, want := range map[string]string{
		"a.yaml": "a.yaml: good: node-1, a cluster of its own; 2 rooms (shop, desk)\n",
		"b.yaml": "b.yaml: good: b, joins a cluster, founds none; 1 room (a)\n",
		"c.yaml": "c.yaml: good: c, founds a cluster with 3 nodes in all, or joins one; 4 rooms (a, b, c, …)\n",
	} {
		stdout, stderr, code := execute(t, t.Context(), "config", "check", file)
		if code != 0 || stderr != "" || stdout != want {
			t.Errorf("exit code %d, errors %q, output %q, want %q", code, stderr, stdout, want)
		}
	}
}

func TestConfigCheckTellsEveryMistake(t *testing.T) {
	inDir(t, map[string]string{"bad.yaml": badConfig})
	stdout, stderr, code := execute(t, t.Context(), "config", "check", "bad.yaml")
	want := `anteroom config check: warning: bad.yaml:5: node.expect: 3, and no node.join: this node cannot look for the others; list some of them in node.join
anteroom config check: warning: bad.yaml:6: security.signing_keys: not set, and neither is node.data: when all nodes stop, everyone loses their place; make keys with: anteroom keys new, or set node.data
anteroom config check: warning: bad.yaml:7: security.admin_token: shorter than 16 characters, so it can be guessed; make one with: openssl rand -hex 32
anteroom config check: bad.yaml:4: node.gatway: unknown key; did you mean gateway?
anteroom config check: bad.yaml:5: node.expect: 3 nodes know each other by a key, and there is none; make a key with: anteroom keys cluster --out cluster.key, and give it to all nodes as security.gossip_key_file
anteroom config check: bad.yaml:8: cluster.lease: 3s is shorter than two detections; make it at least 2 × exclude_after = 4s
anteroom config check: bad.yaml:11: rooms[0].total_active_users: not a whole number; give one such as 200
`
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, output %q, want 1 and none", code, stdout)
	}
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigCheckJSONListsProblemsByFile(t *testing.T) {
	back := inDir(t, map[string]string{"bad.yaml": badConfig, "good.yaml": goodConfig})
	stdout, stderr, code := execute(t, t.Context(), "config", "check", "--json", "bad.yaml")
	if code != 1 || stderr != "anteroom config check: 4 errors; the object on stdout lists them\n" {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
	problems := stdout

	stdout, stderr, code = execute(t, t.Context(), "config", "check", "--json", "good.yaml")
	if want := `{"ok":true,"files":[{"file":"good.yaml","node":"node-1","errors":[],"warnings":[]}]}` + "\n"; code != 0 || stderr != "" || stdout != want {
		t.Errorf("exit code %d, errors %q, output %s", code, stderr, stdout)
	}
	back()
	golden(t, "config-check", problems)
}

func TestConfigCheckComparesFiles(t *testing.T) {
	inDir(t, map[string]string{"a.yaml": goodConfig, "b.yaml": strings.ReplaceAll(goodConfig, "200", "201")})
	t.Setenv("ANTEROOM_NODE_ID", "of-this-machine") // not that of either file
	_, stderr, code := execute(t, t.Context(), "config", "check", "a.yaml", "b.yaml")
	for _, want := range []string{
		`anteroom config check: b.yaml:2: node.id: "node-1" is that of a.yaml too; give each node its own`,
		`anteroom config check: warning: b.yaml:4: rooms[0].total_active_users: not as in a.yaml;`,
	} {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, errors without %q:\n%s", code, want, stderr)
		}
	}
}

func TestConfigCheckOpensTheSigningKeys(t *testing.T) {
	inDir(t, map[string]string{
		"a.yaml": "security: {signing_keys: keys.json}\nrooms: [{name: a, total_active_users: 1}]", "keys.json": `{"keys":[]}`,
	})
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, code := execute(t, t.Context(), "config", "check", "a.yaml")
	if want := "anteroom config check: a.yaml:1: security.signing_keys: keys.json has no key in it; make one with: anteroom keys rotate keys.json\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d, errors %q, want %q (in %s)", code, stderr, want, dir)
	}
	if err := os.WriteFile("keys.json", []byte("opensesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code = execute(t, t.Context(), "config", "check", "a.yaml")
	if code != 1 || !strings.Contains(stderr, "a.yaml:1: security.signing_keys: ") || strings.Contains(stderr, "opensesame") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
}

func TestConfigPrintShowsWhatCounts(t *testing.T) {
	back := inDir(t, map[string]string{"a.yaml": goodConfig})
	t.Setenv("ANTEROOM_SECURITY_ADMIN_TOKEN", "opensesame-opensesame")
	t.Setenv("ANTEROOM_CLUSTER_LEASE", "20s")
	stdout, stderr, code := execute(t, t.Context(), "config", "print", "a.yaml")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	printed := stdout

	stdout, _, code = execute(t, t.Context(), "config", "print", "--json", "a.yaml")
	var c struct {
		Cluster  struct{ Lease string }
		Security map[string]any
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != 0 || c.Cluster.Lease != "20s" || c.Security["admin_token"] != "(hidden)" {
		t.Errorf("exit code %d, %v, output %s", code, err, stdout)
	}
	back()
	golden(t, "config-print", printed)
}

func TestConfigPrintRefusesAWrongFile(t *testing.T) {
	inDir(t, map[string]string{"bad.yaml": badConfig})
	stdout, stderr, code := execute(t, t.Context(), "config", "print", "bad.yaml")
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 4 || !strings.HasPrefix(stderr, "anteroom config print: bad.yaml:4: ") {
		t.Errorf("exit code %d, output %q, errors:\n%s", code, stdout, stderr)
	}
	_, stderr, code = execute(t, t.Context(), "config", "print", "none.yaml")
	if want := "anteroom config print: none.yaml: no such file or directory; docs/anteroom.yaml is a file to start from\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d, errors %q, want %q", code, stderr, want)
	}
}

func TestConfigAndKeysNeedAFile(t *testing.T) {
	for args, want := range map[string]string{
		"config check":            "anteroom config check: no file given; try: anteroom config check anteroom.yaml\n",
		"config print a b":        "anteroom config print: 2 files given; give one\n",
		"config chekc":            "anteroom config: unknown command \"chekc\"; did you mean \"check\"?\n",
		"keys rotate":             "anteroom keys rotate: no file given; try: anteroom keys rotate keys.json\n",
		"keys show a b":           "anteroom keys show: 2 files given; give one\n",
		"keys new x":              "anteroom keys new: unknown command \"x\"; anteroom keys new --help lists the commands\n",
		"keys rotate a -x":        "anteroom keys rotate: unknown shorthand flag: 'x' in -x; anteroom keys rotate --help lists the flags\n",
		"keys rotate a --keep 1s": "anteroom keys rotate: --keep \"1s\": give a time from 1h to 10000h, such as 25h\n",
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields(args)...)
		if code != 2 || stdout != "" || stderr != want {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

// TestTheSampleChecksOut runs what docs/anteroom.yaml tells people to run.
func TestTheSampleChecksOut(t *testing.T) {
	stdout, stderr, code := execute(t, t.Context(), "config", "check", filepath.Join("..", "..", "docs", "anteroom.yaml"))
	if code != 0 || stderr != "" || !strings.Contains(stdout, "anteroom.yaml: good: ") {
		t.Errorf("exit code %d, output %q, errors:\n%s", code, stdout, stderr)
	}
}
