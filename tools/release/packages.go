package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // nfpm finds the formats that are linked in
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// pack writes the package of t in a format, deb or rpm, by deploy/package/nfpm.yaml.
func (r *release) pack(format string, t target) error {
	known := map[string]string{"VERSION": r.version, "ARCH": t.arch, "BIN": r.built(t), "DOCS": r.manual()}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "deploy", "package", "nfpm.yaml"), func(name string) string { return known[name] })
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.date
	info.RPM.BuildHost = "localhost" // else the name of this machine
	for _, c := range info.Contents {
		if c.Source != "" && !filepath.IsAbs(c.Source) {
			c.Source = filepath.Join(r.root, c.Source)
		}
	}
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = filepath.Join(r.root, *script)
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, f), f.Close())
}
