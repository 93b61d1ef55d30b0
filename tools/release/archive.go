package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive: where it comes from, and its name there.
type entry struct {
	from, name string
	mode       fs.FileMode
}

// entries returns what everybody gets who unpacks an archive.
func (r *release) entries(t target) ([]entry, error) {
	all := []entry{
		{filepath.Join(r.built(t), t.program()), t.program(), 0o755},
		{filepath.Join(r.root, "README.md"), "README.md", 0o644},
		{filepath.Join(r.root, "CHANGELOG.md"), "CHANGELOG.md", 0o644},
		{filepath.Join(r.root, "LICENSE"), "LICENSE", 0o644},
		{filepath.Join(r.root, "docs", "licences.md"), "docs/licences.md", 0o644},
		{filepath.Join(r.root, "docs", "anteroom.yaml"), "docs/anteroom.yaml", 0o644},
		{filepath.Join(r.root, "deploy", "anteroom.service"), "deploy/anteroom.service", 0o644},
	}
	err := fs.WalkDir(os.DirFS(r.manual()), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, entry{filepath.Join(r.manual(), filepath.FromSlash(name)), name, 0o644})
		}
		return err
	})
	return all, err
}

// archive writes the archive of t: a zip for Windows, else a compressed tar.
func (r *release) archive(t target) error {
	entries, err := r.entries(t)
	if err != nil {
		return err
	}
	name := "anteroom_" + r.version + "_" + t.os + "_" + t.arch
	if t.os != "windows" {
		return r.tar(name+".tar.gz", name, entries)
	}
	f, err := os.Create(filepath.Join(r.out, name+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(writeZip(f, name, entries, r.date), f.Close())
}

// tar writes a compressed tar with all entries below top.
func (r *release) tar(name, top string, entries []entry) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return errors.Join(writeTar(f, top, entries, r.date), f.Close())
}

func writeTar(w io.Writer, top string, entries []entry, date time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		b, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path.Join(top, e.name), Mode: int64(e.mode), Size: int64(len(b)), ModTime: date, Uname: "root", Gname: "root"}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(b); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func writeZip(w io.Writer, top string, entries []entry, date time.Time) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		b, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(top, e.name), Method: zip.Deflate, Modified: date}
		h.SetMode(e.mode)
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return z.Close()
}
