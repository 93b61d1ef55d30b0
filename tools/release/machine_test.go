package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

// TestARelease builds this repository as a release, twice, and uses it as people do. It
// takes minutes, and root for the machines of its own.
func TestARelease(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real processes; set ANTEROOM_E2E=1")
	}
	b := newBench(t)
	root, other := b.snapshot(t.TempDir()), b.snapshot(filepath.Join(t.TempDir(), "another", "directory"))
	old := b.release(root, "v0.1.0", "")
	t.Run("has the same bytes again", func(t *testing.T) {
		t.Parallel()
		b := b.of(t)
		again := b.release(other, "v0.1.0", t.TempDir())
		got, want := read(t, filepath.Join(again, "SHA256SUMS")), read(t, filepath.Join(old, "SHA256SUMS"))
		if got != want {
			t.Errorf("two builds of one commit differ:\n%s\n%s", got, want)
		}
		t.Logf("the same in two directories, the second time with an empty cache:\n%s", got)
	})
	t.Run("is verified as its page says", func(t *testing.T) {
		t.Parallel()
		b.of(t).verify(old)
	})
	t.Run("is installed and upgraded while people wait", func(t *testing.T) {
		needsRoot(t)
		t.Parallel()
		b := b.of(t)
		b.git(root, "tag", "v0.1.1")
		b.installs(filepath.Join(old, b.deb("0.1.0")), filepath.Join(b.release(root, "v0.1.1", ""), b.deb("0.1.1")))
	})
	t.Run("runs as three containers", func(t *testing.T) {
		needsRoot(t)
		t.Parallel()
		b.of(t).contains(filepath.Join(old, "anteroom_0.1.0_image.tar"))
	})
}

// needsRoot skips a test that cannot have what only root gets, and fails it where nothing
// is to be skipped.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("ANTEROOM_NO_SKIP") != "" {
		t.Fatal("needs root for a machine of its own, and ANTEROOM_NO_SKIP is set")
	}
	t.Skip("SKIPPED: needs root for a machine of its own")
}

// bench is where releases are made.
type bench struct {
	t       *testing.T
	program string // that makes them
	key     string // to sign with
	public  string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, program: filepath.Join(t.TempDir(), "release"), key: filepath.Join(t.TempDir(), "key"), public: filepath.Join(t.TempDir(), "key.pub")}
	b.run(exec.Command("go", "build", "-o", b.program, "."))
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]interface{ MarshalText() ([]byte, error) }{b.key: private, b.public: public} {
		text, err := key.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, string(text)+"\n")
	}
	return b
}

// of is the same bench in a part of the test.
func (b *bench) of(t *testing.T) *bench {
	part := *b
	part.t = t
	return &part
}

func (b *bench) run(cmd *exec.Cmd) string {
	b.t.Helper()
	said, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v: %v\n%s", cmd.Args, err, said)
	}
	return string(said)
}

func (b *bench) git(directory string, args ...string) {
	b.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = directory
	b.run(cmd)
}

// snapshot makes a repository in directory of what this one has, or would add. It has one
// commit, with the same name each time, which is tagged as v0.1.0.
func (b *bench) snapshot(directory string) string {
	b.t.Helper()
	b.run(exec.Command("bash", "-euo", "pipefail", "-c", `
		mkdir -p "$1" && cd ../..
		git ls-files -z --cached --others --exclude-standard | tar --null -T - --ignore-failed-read -cf - | tar -xf - -C "$1"`, "snapshot", directory))
	commit(b.t, directory)
	b.git(directory, "tag", "v0.1.0")
	return directory
}

// release makes one for this machine, with a cache of its own unless that is "", and
// returns the directory with the files.
func (b *bench) release(root, version, cache string) string {
	b.t.Helper()
	out := filepath.Join(b.t.TempDir(), "dist")
	cmd := exec.Command(b.program, "--root", root, "--out", out, "--key", b.key, "--targets", "linux/"+runtime.GOARCH)
	cmd.Env = os.Environ()
	if cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+cache)
	}
	said := b.run(cmd)
	if !strings.Contains(said, "anteroom_"+strings.TrimPrefix(version, "v")+"_image.tar") {
		b.t.Fatalf("no release of %s: %s", version, said)
	}
	return out
}

func (b *bench) deb(version string) string {
	return "anteroom_" + version + "_" + runtime.GOARCH + ".deb"
}

// verify does what docs/install.md says.
func (b *bench) verify(dist string) {
	b.t.Helper()
	signature := exec.Command("minisign", "-V", "-m", "SHA256SUMS", "-p", b.public)
	signature.Dir = dist
	if said := b.run(signature); !strings.Contains(said, "Trusted comment: anteroom 0.1.0") {
		b.t.Errorf("minisign says %s", said)
	}
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = dist
	b.run(sums)
}

// apart runs a script of testdata as root of a machine of its own, which ends with it.
func (b *bench) apart(script string, args ...string) string {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.t.Context(), 10*time.Minute)
	defer stop()
	args = append([]string{"--mount", "--net", "--pid", "--fork", "--kill-child", "bash", script}, args...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+b.t.TempDir(), "LC_ALL=C.UTF-8")
	return b.run(cmd)
}

// machine makes a clean Debian or Ubuntu, as this one is, in a directory, with what
// install.sh asks beside the package. Without debootstrap it is a copy of this machine.
func (b *bench) machine() string {
	b.t.Helper()
	debootstrap, err := exec.LookPath("debootstrap")
	if err != nil {
		b.t.Log("on a copy of this machine, since there is no debootstrap")
		return "/"
	}
	root := filepath.Join(b.t.TempDir(), "machine")
	b.run(exec.Command("bash", "-euc", `. /etc/os-release; exec "$0" --variant=minbase --include=curl,man-db,python3,systemd "$VERSION_CODENAME" "$1"`, debootstrap, root))
	b.t.Log("on a clean machine by debootstrap")
	return root
}

// installs shows what a package does, on a machine that is thrown away.
func (b *bench) installs(before, after string) {
	b.t.Helper()
	given := b.t.TempDir()
	for name, from := range map[string]string{"old.deb": before, "new.deb": after} {
		write(b.t, filepath.Join(given, name), read(b.t, from))
	}
	said := b.apart("testdata/fresh-machine.sh", b.machine(), "testdata/install.sh", filepath.Join(given, "old.deb"), filepath.Join(given, "new.deb"))
	_, figures, ok := strings.Cut(said, "\n{")
	if !ok {
		b.t.Fatalf("no figures of the load: %s", said)
	}
	var load struct {
		Seconds  float64
		Visitors struct{ Came, Done, Lost int }
		Report   struct {
			KendallTau *float64 `json:"kendall_tau"`
			Over       *int     `json:"over_limit_max"`
		}
	}
	if err := json.NewDecoder(strings.NewReader("{" + figures)).Decode(&load); err != nil {
		b.t.Fatalf("%v: %s", err, said)
	}
	v, r := load.Visitors, load.Report
	if v.Came != 400 || v.Done != 400 || v.Lost != 0 {
		b.t.Errorf("of %d people %d were on the site, %d were lost", v.Came, v.Done, v.Lost)
	}
	if r.KendallTau == nil || *r.KendallTau != 0 {
		b.t.Errorf("the order was not kept: Kendall tau %v", r.KendallTau)
	}
	if r.Over == nil || *r.Over != 0 {
		b.t.Errorf("beyond the limit: %v", r.Over)
	}
	b.t.Logf("%d people in %.0f s over three nodes that were upgraded: %d on the site, %d lost", v.Came, load.Seconds, v.Done, v.Lost)
}

// contains starts what is in an image as three containers.
func (b *bench) contains(archive string) {
	b.t.Helper()
	all := images(b.t, archive)
	if len(all) != 1 {
		b.t.Fatalf("%d images, want one", len(all))
	}
	layers, err := all[0].Layers()
	if err != nil {
		b.t.Fatal(err)
	}
	size, err := layers[0].Size()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("the image is %d bytes, compressed", size)
	root := b.t.TempDir()
	if err := unpack(layerOf(b.t, all[0]), root); err != nil {
		b.t.Fatal(err)
	}
	b.t.Log(b.apart("testdata/image.sh", root))
}

// unpack writes a layer into a directory, with the owners that it names.
func unpack(layer io.Reader, root string) error {
	if err := os.Chmod(root, 0o755); err != nil { // the test's directories are for their owner only
		return err
	}
	for in := tar.NewReader(layer); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(name, 0o755)
		} else {
			var body bytes.Buffer
			if _, err = io.Copy(&body, in); err == nil {
				err = os.WriteFile(name, body.Bytes(), 0o644)
			}
		}
		if err = errors.Join(err, os.Chown(name, h.Uid, h.Gid), os.Chmod(name, h.FileInfo().Mode())); err != nil {
			return err
		}
	}
}
