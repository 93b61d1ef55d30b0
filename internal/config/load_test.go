package config_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

func TestVariablesWinOverTheFileAndFlagsOverBoth(t *testing.T) {
	f := parse("node: {id: file, expect: three, join: [bad, bad], data: d}\ncluster: {lease: 20s}\nsecurity: {gossip_key: "+gossipKey+"}"+aRoom, config.Options{
		Environ: []string{
			"ANTEROOM_NODE_ID=variable", "ANTEROOM_NODE_EXPECT=3", "ANTEROOM_NODE_JOIN=127.0.0.1:1, 127.0.0.1:2",
			"ANTEROOM_CLUSTER_MAX_SKEW=300ms", "ANTEROOM_SECURITY_ADMIN_TOKEN=0123456789abcdef", "ANTEROOM_PREFIX=", "PATH=/bin",
		},
		Set: []config.Setting{{Key: "node.id", Value: "flag", From: "--id"}},
	})
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	want := config.Default("")
	want.Node.ID, want.Node.Expect, want.Node.Join, want.Node.Data = "flag", 3, []string{"127.0.0.1:1", "127.0.0.1:2"}, "d"
	want.Cluster.Lease, want.Cluster.MaxSkew = config.Duration(20*time.Second), config.Duration(300*time.Millisecond)
	want.Security.GossipKey = []config.Secret{config.NewSecret(gossipKey)}
	want.Security.AdminToken = config.NewSecret("0123456789abcdef")
	want.Rooms = f.Config.Rooms
	if diff := cmp.Diff(want, f.Config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWrongVariableIsNamed(t *testing.T) {
	f := parse("node: {data: d}"+aRoom, config.Options{
		Environ: []string{
			"ANTEROOM_NODE_EXPECT=many", "ANTEROOM_CLUSTER_LEASE=1s", "ANTEROOM_NODE_JOIN=nowhere", "ANTEROOM_SECURITY_GOSSIP_KEY=opensesame",
			"ANTEROOM_NODE_IDD=x", "ANTEROOM_SEEDS=5", "ANTEROOM_PEER_PORT_7001_TCP=tcp://10.0.0.1:7001", "ANTEROOM_NODE_SERVICE_HOST=10.0.0.1",
		},
		Set: []config.Setting{{Key: "node.gateway", Value: "80", From: "--gateway"}},
	})
	want := []string{
		"--gateway: node.gateway: \"80\" is not host:port; give one such as 0.0.0.0:8080",
		"ANTEROOM_CLUSTER_LEASE: cluster.lease: 1s is shorter than two detections; make it at least 2 × exclude_after = 4s",
		"ANTEROOM_NODE_EXPECT: node.expect: not a whole number; give one such as 200",
		"ANTEROOM_NODE_JOIN: node.join[0]: \"nowhere\" is not host:port; give one such as 10.0.0.2:7946",
		"ANTEROOM_SECURITY_GOSSIP_KEY: security.gossip_key: not base64; make one with: anteroom keys cluster --out cluster.key",
	}
	if diff := cmp.Diff(want, problems(f.Errors)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ANTEROOM_NODE_IDD: no key has this variable; did you mean ANTEROOM_NODE_ID?"}, problems(f.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	const token, key = "opensesame-opensesame", gossipKey
	f := parse("security: {admin_token: "+token+", gossip_key: "+key+"}"+aRoom, config.Options{})
	if got := f.Config.Security.AdminToken.Reveal(); got != token {
		t.Fatalf("Reveal = %q", got)
	}
	if got := f.Config.Security.GossipKeys(); len(got) != 1 || len(got[0]) != 32 {
		t.Fatalf("%d gossip keys", len(got))
	}
	var out bytes.Buffer
	wrapped := struct{ c config.Config }{f.Config} // fmt asks no methods in here
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, f.Config, f.Config.Security, f.Config.Security.AdminToken, wrapped)
		fmt.Fprintf(&out, verb, &f.Config)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "c", f.Config, "s", f.Config.Security, "t", f.Config.Security.AdminToken, "w", wrapped, "f", f)
	}
	if err := json.NewEncoder(&out).Encode(f); err != nil {
		t.Fatal(err)
	}
	out.WriteString(f.Config.String())
	for _, bad := range []string{
		"security: {admin_token: [" + token + "], gossip_key: {" + token + ": 1}}",
		"security: {admin_token: '" + token + " ', gossip_key: " + token + "}",
		"security: {admin_token: 'é" + token + "', gossip_key: '" + token + "'",
		"security: {admin_token: \"" + token + "\\q\"}",
		"security:\n  admin_token: " + token + ": x",
	} {
		f := parse(bad, config.Options{Environ: []string{"ANTEROOM_SECURITY_GOSSIP_KEY=" + token}})
		if f.Err() == nil {
			t.Errorf("%s: no error", bad)
		}
		fmt.Fprintln(&out, f.Err(), f.Warnings)
	}
	for _, secret := range []string{token, key, fmt.Sprintf("%x", token), "6f70656e736573616d65"} {
		if at := strings.Index(out.String(), secret); at >= 0 {
			t.Errorf("%q got out: …%s…", secret, out.String()[max(0, at-100):at+len(secret)])
		}
	}
	if !strings.Contains(out.String(), "(hidden)") {
		t.Error("nothing says that there are secrets")
	}
}

func TestAFileThatCannotBeReadIsTold(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "none.yaml: no such file or directory; docs/anteroom.yaml is a file to start from",
		dir:                             ": is a directory; give a file that this user may read",
	} {
		f := config.Load(name, config.Options{})
		if err := f.Err(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want …%s", name, err, want)
		}
	}
}

func TestFilesThatAreNamedAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return name
	}
	cert, key := keyPair(t)
	_, otherKey := keyPair(t)
	write("cert.pem", cert, 0o644)
	write("key.pem", key, 0o640)
	write("other.pem", otherKey, 0o600)
	write("keys.json", "{}", 0o600)
	write("note.txt", "no certificate", 0o644)
	load := func(text string) *config.File {
		return config.Load(write("a.yaml", text+aRoom, 0o644), config.Options{Host: "host-1"})
	}

	f := load("node: {data: new/data}\nsecurity: {signing_keys: keys.json, tls: {gateway: {cert: cert.pem, key: key.pem}}}")
	if err := f.Err(); err != nil {
		t.Error(err)
	}
	want := []string{strings.ReplaceAll("DIR/a.yaml:2: security.tls.gateway.key: DIR/key.pem may be read by other users (mode 0640); run: chmod 600 DIR/key.pem", "DIR", dir)}
	if diff := cmp.Diff(want, problems(f.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	f = load(`node: {data: note.txt/data}
security:
  signing_keys: none.json
  tls:
    gateway: {cert: cert.pem, key: other.pem}
    peer: {ca: note.txt, cert: gone.pem, key: .}
  gossip_key: ` + gossipKey)
	wants := []string{
		"DIR/a.yaml:1: node.data: DIR/note.txt is no directory; give one, it is made if it is not there",
		"DIR/a.yaml:3: security.signing_keys: DIR/none.json is not there; make it with: anteroom keys new --out DIR/none.json",
		"DIR/a.yaml:5: security.tls.gateway: tls: private key does not match public key; give a PEM certificate and the key that belongs to it",
		"DIR/a.yaml:6: security.tls.peer.ca: DIR/note.txt has no certificate in it; give a PEM file",
		"DIR/a.yaml:6: security.tls.peer.cert: DIR/gone.pem is not there; give a PEM file",
		"DIR/a.yaml:6: security.tls.peer.key: DIR cannot be read: is a directory; give a file that this user may read",
	}
	for i := range wants {
		wants[i] = strings.ReplaceAll(wants[i], "DIR", dir)
	}
	if diff := cmp.Diff(wants, problems(f.Errors)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// keyPair makes a certificate and its key, in PEM.
func keyPair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}
