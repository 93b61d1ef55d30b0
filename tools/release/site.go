package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeSite packs docs/ as a site. Those of all releases are unpacked side by side.
func (r *release) writeSite(ctx context.Context) error {
	all := filepath.Join(r.work, "site")
	if _, err := r.say(ctx, nil, filepath.Join(r.root, "tools", "site", "build"), r.version, all); err != nil {
		return err
	}
	var entries []entry
	pages := filepath.Join(all, r.version)
	err := fs.WalkDir(os.DirFS(pages), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			entries = append(entries, entry{filepath.Join(pages, filepath.FromSlash(name)), name, 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.tar(fmt.Sprintf("anteroom_%s_docs.tar.gz", r.version), r.version, entries)
}
