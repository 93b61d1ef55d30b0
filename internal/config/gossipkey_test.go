package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

// otherKey is the base64 of 16 bytes.
const otherKey = "AAECAwQFBgcICQoLDA0ODw=="

func TestGossipKeyIsOneOrAList(t *testing.T) {
	for _, test := range []struct {
		text    string
		environ []string
		lengths []int
	}{
		{"", nil, nil},
		{"security: {gossip_key: ''}", nil, nil},
		{"security: {gossip_key: " + gossipKey + "}", nil, []int{32}},
		{"security: {gossip_key: [" + gossipKey + ", " + otherKey + "]}", nil, []int{32, 16}},
		{"security: {gossip_key: " + gossipKey + "}", []string{"ANTEROOM_SECURITY_GOSSIP_KEY=" + otherKey + "," + gossipKey}, []int{16, 32}},
	} {
		f := parse(test.text+aRoom, config.Options{Environ: test.environ})
		keys := f.Config.Security.GossipKeys()
		ok := f.Err() == nil && len(keys) == len(test.lengths)
		for i := range test.lengths {
			ok = ok && len(keys[i]) == test.lengths[i]
		}
		if !ok {
			t.Errorf("%s %v: %d keys, %v", test.text, test.environ, len(keys), f.Err())
		}
	}
}

func TestGossipKeysComeFromAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "node: {data: d}\nsecurity: {gossip_key_file: cluster.key}"+aRoom, 0o600)
	load := func() *config.File { return config.Load(filepath.Join(dir, "a.yaml"), config.Options{Host: "host-1"}) }

	if err := load().Err(); err == nil || !strings.Contains(err.Error(), "make it with: anteroom keys cluster --out "+dir) {
		t.Errorf("without the file: %v", err)
	}
	write("cluster.key", "# a comment\n\n"+gossipKey+"\r\n "+otherKey, 0o600)
	f := load()
	if keys := f.Config.Security.GossipKeys(); f.Err() != nil || len(keys) != 2 || len(keys[0]) != 32 || len(keys[1]) != 16 {
		t.Errorf("%d keys, %v", len(keys), f.Err())
	}
	for text, want := range map[string]string{
		"":                                "no key in it",
		"# " + gossipKey:                  "no key in it",
		gossipKey + "\nopensesame":        "line 2: not base64",
		gossipKey + "\n" + gossipKey:      "twice",
		strings.Repeat("#\n", 10<<10):     "longer than 16 KiB",
		strings.Repeat(gossipKey+"\n", 9): "9 keys; give 8 at most",
	} {
		write("cluster.key", text, 0o600)
		err := load().Err()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "security.gossip_key_file") || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	write("cluster.key", gossipKey, 0o600)
	if err := os.Chmod(filepath.Join(dir, "cluster.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if w := problems(load().Warnings); !strings.Contains(strings.Join(w, "\n"), "may be read by other users") {
		t.Errorf("warnings %q", w)
	}

	by := config.Flags(config.Options{Host: "x", Set: []config.Setting{
		{Key: "node.join", Value: "127.0.0.1:1", From: "--join"},
		{Key: "security.gossip_key_file", Value: filepath.Join(dir, "cluster.key"), From: "--gossip-key-file"},
	}})
	if by.Err() != nil || len(by.Config.Security.GossipKeys()) != 1 {
		t.Errorf("by a flag: %v", by.Err())
	}
}

// Whatever the file says, the keys that come of it are keys, and no error has
// anything of them.
func FuzzParseGossipKeys(f *testing.F) {
	f.Add([]byte("# x\n" + gossipKey + "\n" + otherKey))
	f.Add([]byte("\n\r\n" + gossipKey))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := config.ParseGossipKeys(text)
		if err != nil {
			return
		}
		for _, k := range (config.Security{GossipKey: keys}).GossipKeys() {
			if n := len(k); n != 16 && n != 24 && n != 32 {
				t.Errorf("a key of %d bytes", n)
			}
		}
		if n := len(keys); n == 0 || n > 8 {
			t.Errorf("%d keys", n)
		}
	})
}

// While a key is exchanged the nodes' lists differ, but each opens what the
// others seal.
func TestGossipKeysOfTwoNodesFitTogether(t *testing.T) {
	const a, b, c = gossipKey, otherKey, "AAECAwQFBgcICQoLDA0ODg=="
	file := func(name, keys string) *config.File {
		return config.Parse(name, []byte("node: {id: "+name+", data: d, join: ['127.0.0.1:1']}\nsecurity: {gossip_key: ["+keys+"]}"+aRoom), config.Options{})
	}
	for _, test := range []struct {
		one, other  string
		err, warned bool
	}{
		{a, a, false, false},
		{a, a + "," + b, false, true},
		{a + "," + b, b + "," + a, false, true},
		{a, b, true, false},
		{a, b + "," + a, true, false},
		{a + "," + b, c + "," + a, true, false},
		{a, "", true, false},
	} {
		files := []*config.File{file("n1", test.one), file("n2", test.other)}
		config.Together(files)
		has := func(ps []config.Problem) bool {
			return strings.Contains(strings.Join(problems(ps), "\n"), "security.gossip_key: not ")
		}
		if has(files[1].Errors) != test.err || has(files[1].Warnings) != test.warned {
			t.Errorf("%s with %s: errors %v, warnings %v", test.one, test.other, files[1].Errors, files[1].Warnings)
		}
	}
}
