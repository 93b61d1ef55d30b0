package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

// Every secret that others may read, and every place where they could put one of
// theirs, is told.
func TestSecretsThatOthersMayReadAreTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no modes")
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	cert, key := keyPair(t)
	write("cert.pem", cert, 0o644)
	write("gateway-key.pem", key, 0o644)
	write("peer-key.pem", key, 0o660)
	write("signing.json", "{}", 0o604)
	write("cluster.key", gossipKey+"\n", 0o640)
	tls := "tls: {gateway: {cert: cert.pem, key: gateway-key.pem}, peer: {ca: cert.pem, cert: cert.pem, key: peer-key.pem}}"
	const token = "admin_token: 0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		text      string
		file      os.FileMode
		data      os.FileMode // 0: not there yet
		warn, bad []string    // keys
	}{
		"everything": {
			"node: {data: d, join: [127.0.0.1:7946]}\nsecurity:\n  signing_keys: signing.json\n  gossip_key_file: cluster.key\n  " + token + "\n  " + tls, 0o644, 0o770,
			[]string{"node.data", "security.signing_keys", "security.gossip_key_file", "security.admin_token", "security.tls.gateway.key", "security.tls.peer.key"},
			nil,
		},
		"a key in the file":                 {"node: {data: d, join: [127.0.0.1:7946]}\nsecurity:\n  gossip_key: " + gossipKey, 0o604, 0o700, []string{"security.gossip_key"}, nil},
		"a key in a file that others write": {"node: {data: d}\nsecurity:\n  " + token, 0o620, 0o755, []string{"security.admin_token"}, nil},
		"a token for the service's group":   {"node: {data: d}\nsecurity:\n  " + token, 0o640, 0o750, nil, nil},
		"nothing secret":                    {"node: {data: d}", 0o666, 0, nil, nil},
		"data that everybody writes":        {"node: {data: d}", 0o600, 0o777, nil, []string{"node.data"}},
		"data in /tmp's manner":             {"node: {data: d}", 0o600, 0o777 | os.ModeSticky, nil, []string{"node.data"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(dir, "d")
			if c.data != 0 {
				if err := os.MkdirAll(data, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(data, c.data); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = os.RemoveAll(data) }()
			}
			write("a.yaml", c.text+aRoom, c.file)
			f := config.Load(filepath.Join(dir, "a.yaml"), config.Options{Host: "host-1"})
			var warn, bad []string
			for _, p := range f.Warnings {
				if strings.Contains(p.Text, "mode 0") {
					warn = append(warn, p.Key)
				}
			}
			for _, p := range f.Errors {
				bad = append(bad, p.Key)
			}
			if d := cmp.Diff(c.warn, warn); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, f.Warnings)
			}
			if d := cmp.Diff(c.bad, bad); d != "" {
				t.Errorf("errors (-want +got):\n%s%v", d, f.Errors)
			}
		})
	}
}

func TestAServiceMayReadTheKeyOfRootByItsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	for mode, want := range map[os.FileMode]int{0o400: 0, 0o440: 0, 0o640: 0, 0o660: 1, 0o444: 1} {
		dir := t.TempDir()
		name := filepath.Join(dir, "cluster.key")
		if err := os.WriteFile(name, []byte(gossipKey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(name, mode), os.Chown(name, 65532, 65532)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "a.yaml")
		if err := os.WriteFile(file, []byte("node: {data: d, join: [127.0.0.1:7946]}\nsecurity: {gossip_key_file: cluster.key}"+aRoom), 0o600); err != nil {
			t.Fatal(err)
		}
		if f := config.Load(file, config.Options{Host: "host-1"}); len(f.Warnings) != want || len(f.Errors) > 0 {
			t.Errorf("mode %04o: warnings %v, errors %v, want %d warnings", mode, f.Warnings, f.Errors, want)
		}
	}
}
