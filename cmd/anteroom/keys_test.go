package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/tokens"
)

// at runs the program so long after 1970 began.
func at(t *testing.T, since time.Duration, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, now: func() time.Time { return time.Unix(0, 0).Add(since) }}
	code = exitCode(p.run(context.Background(), args))
	return masked(out.String()), errs.String(), code
}

// masked puts ID for the ids of keys, which are random.
func masked(text string) string {
	return regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(text, "------ ID ------")
}

func TestKeysAreMadeRotatedAndShown(t *testing.T) {
	back := inDir(t, nil)
	day := 24 * time.Hour
	var b strings.Builder
	for _, step := range []struct {
		since time.Duration
		args  string
	}{
		{0, "keys new"},
		{0, "keys show keys.json"},
		{day, "keys rotate keys.json"},
		{day + 90*time.Second, "keys show keys.json"},
		{4 * day, "keys rotate keys.json"},
		{4*day + 50*time.Hour, "keys show keys.json"},
		{4 * day, "keys show keys.json --json"},
		{5 * day, "keys rotate keys.json --keep 240h"},
	} {
		stdout, stderr, code := at(t, step.since, strings.Fields(step.args)...)
		if code != 0 || stderr != "" {
			t.Fatalf("%s: exit code %d: %s", step.args, code, stderr)
		}
		b.WriteString("$ anteroom " + step.args + "\n" + stdout)
	}
	back()
	golden(t, "keys", b.String())
}

func TestKeysNewKeepsWhatIsThere(t *testing.T) {
	inDir(t, nil)
	if _, stderr, code := at(t, 0, "keys", "new", "--out", "k.json"); code != 0 {
		t.Fatal(stderr)
	}
	info, err := os.Stat("k.json")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("k.json: mode %v, %v, want one that only its owner may read", info.Mode(), err)
	}
	before, err := os.ReadFile("k.json")
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, code := at(t, 0, "keys", "new", "--out", "k.json")
	if want := "anteroom keys new: k.json is there already, and places that its keys sealed would be lost; " +
		"add a key with: anteroom keys rotate k.json, or write over it with --force\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d, errors %q, want %q", code, stderr, want)
	}
	if after, err := os.ReadFile("k.json"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed, or %v", err)
	}
	if _, stderr, code := at(t, 0, "keys", "new", "--out", "k.json", "--force"); code != 0 {
		t.Error(stderr)
	}
	if after, err := os.ReadFile("k.json"); err != nil || bytes.Equal(before, after) {
		t.Errorf("the file did not change, or %v", err)
	}
}

func TestKeysClusterMakesAFileOfItsOwn(t *testing.T) {
	inDir(t, nil)
	read := func() []config.Secret {
		text, err := os.ReadFile("cluster.key")
		if err != nil {
			t.Fatal(err)
		}
		keys, err := config.ParseGossipKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	stdout, stderr, code := at(t, 0, "keys", "cluster")
	if code != 0 || stderr != "" || stdout != "wrote cluster.key; give all nodes this file as security.gossip_key_file, or with --gossip-key-file\n" {
		t.Fatalf("exit code %d: %q, %q", code, stdout, stderr)
	}
	if info, err := os.Stat("cluster.key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want one that only its owner may read", info.Mode(), err)
	}
	first := read()
	_, stderr, code = at(t, 0, "keys", "cluster", "--out", "cluster.key")
	if code != 1 || !strings.Contains(stderr, "cluster.key is there already") || !strings.Contains(stderr, "anteroom keys cluster --out - >> cluster.key") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
	if again := read(); len(first) != 1 || !again[0].Equal(first[0]) {
		t.Error("the file changed")
	}
	if _, stderr, code := at(t, 0, "keys", "cluster", "--force"); code != 0 {
		t.Error(stderr)
	}
	if again := read(); again[0].Equal(first[0]) {
		t.Error("the same key twice")
	}
	stdout, _, _ = at(t, 0, "keys", "cluster", "--out", "-")
	if keys, err := config.ParseGossipKeys([]byte(stdout)); err != nil || len(keys) != 1 || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%q: %v", stdout, err)
	}
}

func TestKeysTellWhatIsWrongAndShowNoSecret(t *testing.T) {
	inDir(t, map[string]string{"bad.json": `{"keys":[{"id":"opensesame"}]}`})
	for _, args := range []string{"keys rotate none.json", "keys show bad.json", "keys rotate bad.json", "keys new --out none/keys.json"} {
		stdout, stderr, code := at(t, 0, strings.Fields(args)...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, ".json") || strings.Contains(stderr, "opensesame") {
			t.Errorf("%s: exit code %d, output %q, errors %q", args, code, stdout, stderr)
		}
	}
	if _, stderr, code := at(t, 0, "keys", "new"); code != 0 {
		t.Fatal(stderr)
	}
	var file struct {
		Keys []struct{ Secret, Signing string }
	}
	text, err := os.ReadFile("keys.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"keys show keys.json", "keys show keys.json --json", "keys rotate keys.json"} {
		stdout, _, _ := at(t, 0, strings.Fields(args)...)
		if strings.Contains(stdout, file.Keys[0].Secret) || strings.Contains(stdout, file.Keys[0].Signing) {
			t.Errorf("%s shows a secret:\n%s", args, stdout)
		}
	}
}

func TestKeysTokenShowsTheTokenOnceAndWhatNodesKeep(t *testing.T) {
	inDir(t, nil)
	stdout, stderr, code := execute(t, t.Context(), strings.Fields("keys token --name resizer --may take,view --queues images,team/* --rooms *")...)
	secret, rest, _ := strings.Cut(stdout, "\n")
	if code != 0 || stderr != "" || strings.Contains(rest, secret) {
		t.Fatalf("exit code %d: %q, %q", code, stdout, stderr)
	}
	_, yaml, ok := strings.Cut(rest, "one by one:\n\n")
	f := config.Parse("printed", []byte(yaml), config.Options{Host: "a"})
	if !ok || f.Err() != nil {
		t.Fatalf("%v\n%s", f.Err(), yaml)
	}
	found := f.Config.Tokens().Find(secret)
	if found == nil || found.Name != "resizer" || !found.Queues.Match("team/a") || found.Queues.Match("other") || !found.Rooms.All() {
		t.Errorf("the nodes find %+v", found)
	}
	stdout, stderr, code = execute(t, t.Context(), strings.Fields("keys token --name shop --may put --queues orders --out shop.token")...)
	text, err := os.ReadFile("shop.token")
	if err != nil {
		t.Fatal(err)
	}
	secret = strings.TrimSpace(string(text))
	if info, err := os.Stat("shop.token"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want one that only its owner may read", info.Mode(), err)
	}
	if _, ok := tokens.HashOf(secret); !ok || code != 0 || strings.Contains(stdout+stderr, secret) {
		t.Errorf("exit code %d, token %q, output %q", code, secret, stdout)
	}
	if _, stderr, code := execute(t, t.Context(), strings.Fields("keys token --name shop --may put --queues orders --out shop.token")...); code != 1 || !strings.Contains(stderr, "--force") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
	for args, want := range map[string]string{
		"":                                     "--name: ",
		"--name a --may all --queues b":        "--may: \"all\"; give some of put, take, manage",
		"--name a --may put":                   "names nothing that it is for",
		"--name a --may put --queues *b":       "--queues: \"*b\" is no name",
		"--name a --may put --rooms b --force": "",
	} {
		if _, stderr, code := execute(t, t.Context(), strings.Fields("keys token "+args)...); (code == 2) != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, errors %q", args, code, stderr)
		}
	}
}
