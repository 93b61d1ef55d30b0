package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user runs the program in the image. Kubernetes' runAsNonRoot wants a number.
const user = 65532

// imageMax is how many bytes of an image go over a network at most. One is 17 million.
const imageMax = 25_000_000

// writeImage writes an image for all of Linux' architectures, as an archive that
// docker load, podman load, skopeo and crane read. Its root may be read-only.
func (r *release) writeImage() error {
	var index v1.ImageIndex = empty.Index
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		image, err := r.image(t)
		if err != nil {
			return err
		}
		if err := small(image); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}},
		})
	}
	if manifest, err := index.IndexManifest(); err != nil || len(manifest.Manifests) == 0 {
		return err
	}
	named := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": r.version,
			"io.containerd.image.name":          "docker.io/library/anteroom:" + r.version,
		}},
	})
	directory := filepath.Join(r.work, "image")
	if _, err := layout.Write(directory, named); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.out, "anteroom_"+r.version+"_image.tar"))
	if err != nil {
		return err
	}
	return errors.Join(tarOf(f, directory, r.date), f.Close())
}

func small(image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	var sum int64
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return err
		}
		sum += size
	}
	if sum > imageMax {
		return fmt.Errorf("%d bytes, and nobody should have to wait for more than %d", sum, imageMax)
	}
	return nil
}

// image is the program, what it needs to know of the world, and nothing else.
func (r *release) image(t target) (v1.Image, error) {
	files, err := r.layer(t)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(9), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "tools/release", Comment: "anteroom " + r.version},
	})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.imageConfig(image, t))
}

func (r *release) imageConfig(image v1.Image, t target) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		panic(err) // it was made just now, in memory
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = t.os, t.arch
	config.Created = v1.Time{Time: r.date}
	config.Config = v1.Config{
		User:         "65532:65532",
		Env:          []string{"PATH=/usr/bin"},
		Entrypoint:   []string{"/usr/bin/anteroom"},
		Cmd:          []string{"serve", "--config", "/etc/anteroom/anteroom.yaml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}, "7001/tcp": {}, "7002/tcp": {}, "7946/tcp": {}, "7946/udp": {}},
		Volumes:      map[string]struct{}{"/var/lib/anteroom": {}},
		WorkingDir:   "/var/lib/anteroom",
		StopSignal:   "SIGTERM",
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/anteroom", "healthcheck"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 5 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "anteroom",
			"org.opencontainers.image.description": "A fair waiting room for websites",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.commit,
			"org.opencontainers.image.created":     r.date.Format(time.RFC3339),
			"org.opencontainers.image.source":      "https://github.com/anteroom/anteroom",
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return config
}

// layer is the tar of all files in the image.
func (r *release) layer(t target) ([]byte, error) {
	program, err := os.ReadFile(filepath.Join(r.built(t), t.program()))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []struct {
		name string
		mode int64
		user int
		body []byte
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/anteroom/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, []byte("anteroom:x:65532:\n")},
		{"etc/passwd", 0o644, 0, []byte("anteroom:x:65532:65532:anteroom:/var/lib/anteroom:/sbin/nologin\n")},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots()},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/anteroom", 0o755, 0, program},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{"var/lib/anteroom/", 0o700, user, nil},
	} {
		kind := byte(tar.TypeReg)
		if h.body == nil {
			kind = tar.TypeDir
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: kind, Name: h.name, Mode: h.mode, Size: int64(len(h.body)), Uid: h.user, Gid: h.user, ModTime: r.date}); err != nil {
			return nil, err
		}
		if _, err := w.Write(h.body); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// roots are the authorities that Mozilla trusts for servers: webhooks, checks and
// mail go by TLS, and an image from scratch has none of its own.
func roots() []byte {
	var out []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a bundle of PEM can't tell until when one is trusted
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return out
}

// tarOf writes a directory's files, in the order of their names.
func tarOf(w io.Writer, directory string, date time.Time) error {
	var names []string
	tree := os.DirFS(directory)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	t := tar.NewWriter(w)
	for _, name := range names {
		b, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), ModTime: date}); err != nil {
			return err
		}
		if _, err := t.Write(b); err != nil {
			return err
		}
	}
	return t.Close()
}
