package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// Where the chart, or the Compose file, starts the program, that takes its
// configuration.
func TestTheProgramTakesItsConfiguration(t *testing.T) {
	program := filepath.Join(t.TempDir(), "anteroom")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./cmd/anteroom")
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, said)
	}
	t.Run("compose", func(t *testing.T) { takesCompose(t, program) })
	t.Run("chart", func(t *testing.T) { takesChart(t, program) })
}

// takesChart: with what the volumes and the environment of a container have.
func takesChart(t *testing.T, program string) {
	run := func(env []string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), env...)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	for _, set := range append(sets(t), "../../../deploy/kubernetes/anteroom.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(set), ".yaml"), func(t *testing.T) {
			manifests, made := set, strings.HasSuffix(set, ".yaml")
			if !made {
				manifests += ".golden.yaml"
			}
			all := objects(t, read(t, filepath.Join("testdata", manifests)))
			p := mounted(t, all)
			for _, args := range [][]string{{"keys", "cluster", "--out", p.path("/run/secrets/anteroom/cluster.key")}, {"keys", "new", "--out", p.path("/run/secrets/anteroom/signing-keys.json")}} {
				if said, err := run(nil, args...); err != nil {
					t.Fatalf("%v: %v: %s", args, err, said)
				}
			}
			said, err := run(p.env, "config", "check", p.path("/etc/anteroom/anteroom.yaml"))
			if err != nil || !strings.Contains(said, "good: anteroom-0, founds a cluster with ") {
				t.Errorf("config check: %v: %s", err, said)
			}
			if strings.Contains(said, "mode 0") {
				t.Errorf("config check warns of how files are mounted: %s", said)
			}
			said, err = run(p.env, append(p.args, "--help")...)
			if err != nil || !strings.Contains(said, "Run one node of a waiting room") {
				t.Errorf("%q: %v: %s", p.args, err, said)
			}
		})
	}
}

// pod is the first pod of a StatefulSet, with its volumes in a directory.
type pod struct {
	root string
	args []string
	env  []string
}

// path is where a file of the container is.
func (p *pod) path(name string) string { return filepath.Join(p.root, filepath.FromSlash(name)) }

// mounted makes the volumes of a pod, without what is in Secrets.
func mounted(t *testing.T, all []any) *pod {
	t.Helper()
	p := &pod{root: t.TempDir()}
	spec := one[apps.StatefulSet](t, all).Spec.Template.Spec
	c := spec.Containers[0]
	var moves []string
	for _, m := range c.VolumeMounts {
		if err := os.MkdirAll(p.path(m.MountPath), 0o700); err != nil {
			t.Fatal(err)
		}
		moves = append(moves, m.MountPath+"/", p.path(m.MountPath)+"/")
		if strings.HasPrefix(m.Name, "tls-") {
			certify(t, p.path(m.MountPath))
		}
	}
	move := strings.NewReplacer(moves...)
	for name, body := range one[core.ConfigMap](t, all).Data {
		if err := os.WriteFile(p.path("/etc/anteroom/"+name), []byte(move.Replace(body)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range c.Env {
		p.env = append(p.env, e.Name+"="+valueOf(t, e))
	}
	for _, a := range c.Args {
		p.args = append(p.args, move.Replace(a))
	}
	return p
}

// valueOf is what a variable of the first pod has.
func valueOf(t *testing.T, e core.EnvVar) string {
	t.Helper()
	if e.ValueFrom == nil {
		return e.Value
	}
	if f := e.ValueFrom.FieldRef; f != nil {
		return map[string]string{"metadata.name": "anteroom-0", "status.podIP": "10.1.2.3"}[f.FieldPath]
	}
	return map[string]string{"admin-token": "0123456789abcdef0123456789abcdef", "challenge-key": "0123456789abcdef0123456789abcdef"}[e.ValueFrom.SecretKeyRef.Key]
}

// certify writes a certificate and its key, as a Secret for TLS has them.
func certify(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "anteroom"}, DNSNames: []string{"anteroom-nodes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: sealed}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
