package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// newTestRelease is a release of a program of a few bytes, for targets.
func newTestRelease(t *testing.T, targets ...target) *release {
	t.Helper()
	r := &release{
		root: "../..", out: t.TempDir(), work: t.TempDir(), targets: targets,
		commit: "0123456789abcdef", date: time.Unix(1_700_000_000, 0).UTC(), version: "1.2.3",
	}
	for _, target := range targets {
		write(t, filepath.Join(r.built(target), target.program()), "the program of "+target.String())
	}
	write(t, filepath.Join(r.manual(), "man", "anteroom.1"), ".TH ANTEROOM 1\n")
	write(t, filepath.Join(r.manual(), "completions", "anteroom.bash"), "complete anteroom\n")
	return r
}

func write(t *testing.T, name, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTargetsAreSystemsAndArchitectures(t *testing.T) {
	got, err := parseTargets("linux/arm64, windows/amd64")
	if want := []target{{"linux", "arm64"}, {"windows", "amd64"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("parseTargets = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "linux", "linux/", "/arm64", "linux/arm64,"} {
		if got, err := parseTargets(bad); err == nil || !strings.Contains(err.Error(), "as in linux/arm64") {
			t.Errorf("parseTargets(%q) = %v, %v, want an error with an example", bad, got, err)
		}
	}
}

func TestFilesOfAnotherReleaseAreNotAmongTheSums(t *testing.T) {
	root := committed(t)
	out := t.TempDir()
	write(t, filepath.Join(out, "old.deb"), "of another release")
	if _, err := newRelease(t.Context(), root, out, nil); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("newRelease into a directory with a file: %v", err)
	}
}

func TestWhatNoCommitHasIsNotReleased(t *testing.T) {
	root := committed(t)
	write(t, filepath.Join(root, "new.go"), "package main\n")
	if _, err := newRelease(t.Context(), root, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), `"?? new.go": commit them`) {
		t.Errorf("newRelease with a file that no commit has: %v", err)
	}
}

// committed is a repository with one commit.
func committed(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "main.go"), "package main\n")
	commit(t, root)
	return root
}

// commit makes one commit of all that is in a directory, the same one each time.
func commit(t *testing.T, root string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "--all"}, {"commit", "-q", "-m", "all"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=0",
			"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
			"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, said)
		}
	}
}

func TestSumsAreSignedAndAChangedFileIsFound(t *testing.T) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "minisign.key")
	write(t, key, string(text))
	r := newTestRelease(t)
	write(t, filepath.Join(r.out, "a.deb"), "a")
	write(t, filepath.Join(r.out, "b.rpm"), "b")
	if err := r.sum(key); err != nil {
		t.Fatal(err)
	}

	check := func() error {
		cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
		cmd.Dir = r.out
		return cmd.Run()
	}
	if err := check(); err != nil {
		t.Errorf("sha256sum --check: %v", err)
	}
	write(t, filepath.Join(r.out, "b.rpm"), "c")
	if check() == nil {
		t.Error("sha256sum --check let a changed file pass")
	}

	sums := read(t, filepath.Join(r.out, "SHA256SUMS"))
	signature := read(t, filepath.Join(r.out, "SHA256SUMS.minisig"))
	other, _, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		key  minisign.PublicKey
		sums string
		want bool
	}{
		{"as it is", public, sums, true},
		{"with a changed sum", public, "0" + sums[1:] + " ", false},
		{"with another's key", other, sums, false},
	} {
		message := minisign.NewReader(strings.NewReader(c.sums))
		if _, err := io.Copy(io.Discard, message); err != nil {
			t.Fatal(err)
		}
		if got := message.Verify(c.key, []byte(signature)); got != c.want {
			t.Errorf("%s: the signature is good: %v, want %v", c.what, got, c.want)
		}
	}
	if !strings.Contains(signature, "trusted comment: anteroom 1.2.3\n") {
		t.Errorf("the signature does not name the release: %s", signature)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAKeyThatDoesNotOpenSaysWhatIsMissing(t *testing.T) {
	// A key under another password, in minisign's form; it asks for little work and
	// memory, where those of minisign -G take a GB.
	var sealed [158]byte
	copy(sealed[:], "EdScB2")
	binary.LittleEndian.PutUint64(sealed[38:], 1<<15)
	binary.LittleEndian.PutUint64(sealed[46:], 1<<24)
	keys := t.TempDir()
	write(t, filepath.Join(keys, "sealed"), "untrusted comment: minisign encrypted secret key\n"+base64.StdEncoding.EncodeToString(sealed[:])+"\n")
	write(t, filepath.Join(keys, "public"), "untrusted comment: minisign public key\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n")
	t.Setenv("MINISIGN_PASSWORD", "not this")
	for name, want := range map[string]string{
		"sealed":  "set MINISIGN_PASSWORD to its password",
		"public":  "give the secret key that minisign -G made",
		"missing": "no such file",
	} {
		_, err := secretKey(filepath.Join(keys, name))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "not this") {
			t.Errorf("key %s: %v, want %q", name, err, want)
		}
	}
}

// filesOf are the names and bodies in a tar; that of a directory is "".
func filesOf(t *testing.T, r io.Reader) (names []string, bodies map[string]string, headers map[string]*tar.Header) {
	t.Helper()
	bodies, headers = map[string]string{}, map[string]*tar.Header{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names, bodies, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		bodies[h.Name], headers[h.Name] = string(b), h
	}
}

// images reads the image of a release as those who load it do.
func images(t *testing.T, file string) []v1.Image {
	t.Helper()
	_, bodies, _ := filesOf(t, strings.NewReader(read(t, file)))
	directory := t.TempDir()
	for name, body := range bodies {
		write(t, filepath.Join(directory, filepath.FromSlash(name)), body)
	}
	index, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("index: %v, %v, want one with the name", manifest, err)
	}
	index, err = index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var all []v1.Image
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, image)
	}
	return all
}

// layerOf is the tar of all files of an image.
func layerOf(t *testing.T, image v1.Image) io.Reader {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %v, %v, want one", layers, err)
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = layer.Close() })
	return layer
}

func TestTheImageHasAProgramForEachArchitectureAndNoRoot(t *testing.T) {
	r := newTestRelease(t, target{"linux", "amd64"}, target{"linux", "arm64"}, target{"darwin", "arm64"})
	if err := r.writeImage(); err != nil {
		t.Fatal(err)
	}
	all := images(t, filepath.Join(r.out, "anteroom_1.2.3_image.tar"))
	if len(all) != 2 {
		t.Fatalf("%d images, want those of Linux' two architectures", len(all))
	}
	for i, image := range all {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if want := r.targets[i]; config.OS != want.os || config.Architecture != want.arch {
			t.Errorf("image %d is for %s/%s, want %s", i, config.OS, config.Architecture, want)
		}
		if config.Config.User != "65532:65532" || strings.Join(config.Config.Healthcheck.Test, " ") != "CMD /usr/bin/anteroom healthcheck" {
			t.Errorf("it runs as %q and is asked by %q", config.Config.User, config.Config.Healthcheck.Test)
		}
		if labels := config.Config.Labels; labels["org.opencontainers.image.version"] != "1.2.3" || labels["org.opencontainers.image.revision"] != r.commit {
			t.Errorf("labels: %v", labels)
		}
		names, bodies, headers := filesOf(t, layerOf(t, image))
		want := strings.Fields("etc/ etc/anteroom/ etc/group etc/passwd etc/ssl/ etc/ssl/certs/ etc/ssl/certs/ca-certificates.crt tmp/ usr/ usr/bin/ usr/bin/anteroom var/ var/lib/ var/lib/anteroom/")
		if !slices.Equal(names, want) {
			t.Errorf("files: %q, want %q", names, want)
		}
		if got, want := bodies["usr/bin/anteroom"], "the program of "+r.targets[i].String(); got != want {
			t.Errorf("the program is %q, want %q", got, want)
		}
		if n := strings.Count(bodies["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE"); n < 100 {
			t.Errorf("%d authorities: nobody's webhook could be called", n)
		}
		for name, h := range headers {
			if writable := h.Uid != 0 || h.Mode&0o022 != 0; writable != (name == "tmp/" || name == "var/lib/anteroom/") {
				t.Errorf("%s: owner %d, mode %o", name, h.Uid, h.Mode)
			}
		}
	}
}

func TestALargeImageIsNoRelease(t *testing.T) {
	linux := target{"linux", "amd64"}
	r := newTestRelease(t, linux)
	noise := make([]byte, imageMax+1)
	source := rand.NewChaCha8([32]byte{})
	if _, err := source.Read(noise); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.built(linux), "anteroom"), string(noise))
	if err := r.writeImage(); err == nil || !strings.Contains(err.Error(), "more than 25000000") {
		t.Errorf("writeImage of %d bytes: %v", len(noise), err)
	}
}

func TestArchivesHaveTheProgramItsManualAndItsLicences(t *testing.T) {
	linux, windows := target{"linux", "arm64"}, target{"windows", "amd64"}
	r := newTestRelease(t, linux, windows)
	for _, target := range r.targets {
		if err := r.archive(target); err != nil {
			t.Fatal(err)
		}
	}
	z, err := gzip.NewReader(strings.NewReader(read(t, filepath.Join(r.out, "anteroom_1.2.3_linux_arm64.tar.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	names, bodies, headers := filesOf(t, z)
	want := strings.Fields("anteroom README.md CHANGELOG.md LICENSE docs/licences.md docs/anteroom.yaml deploy/anteroom.service completions/anteroom.bash man/anteroom.1")
	for i, name := range want {
		want[i] = "anteroom_1.2.3_linux_arm64/" + name
	}
	if !slices.Equal(names, want) {
		t.Errorf("files: %q, want %q", names, want)
	}
	if h := headers[want[0]]; bodies[want[0]] != "the program of linux/arm64" || h.Mode != 0o755 || !h.ModTime.Equal(r.date) {
		t.Errorf("the program: %q, mode %o, of %v", bodies[want[0]], h.Mode, h.ModTime)
	}

	zipped, err := zip.OpenReader(filepath.Join(r.out, "anteroom_1.2.3_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zipped.Close() }()
	if len(zipped.File) != len(want) || zipped.File[0].Name != "anteroom_1.2.3_windows_amd64/anteroom.exe" {
		t.Errorf("the zip has %d files, the first is %s", len(zipped.File), zipped.File[0].Name)
	}
	f, err := zipped.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	var program bytes.Buffer
	if _, err := io.Copy(&program, f); err != nil || program.String() != "the program of windows/amd64" {
		t.Errorf("the program: %q, %v", program.String(), err)
	}
}

func TestTheChartOfAReleaseInstallsItsImage(t *testing.T) {
	r := newTestRelease(t)
	if err := r.writeChart(); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(r.out, "anteroom-1.2.3.tgz")
	got, err := loader.Load(packed)
	if err != nil {
		t.Fatal(err)
	}
	want, err := loader.Load("../../deploy/helm/anteroom")
	if err != nil {
		t.Fatal(err)
	}
	if got.Metadata.Version != "1.2.3" || got.Metadata.AppVersion != "1.2.3" || got.Metadata.KubeVersion != want.Metadata.KubeVersion {
		t.Errorf("it says that it is %+v", got.Metadata)
	}
	if len(got.Templates) != len(want.Templates) || len(got.Schema) == 0 || len(got.Files) != len(want.Files) {
		t.Errorf("%d templates, %d bytes of schema, %d files, and the source has %d, %d, %d", len(got.Templates), len(got.Schema), len(got.Files), len(want.Templates), len(want.Schema), len(want.Files))
	}
	first := read(t, packed)
	r.out = t.TempDir()
	if err := r.writeChart(); err != nil {
		t.Fatal(err)
	}
	if read(t, filepath.Join(r.out, "anteroom-1.2.3.tgz")) != first {
		t.Error("packed twice, it is not the same bytes")
	}
}
