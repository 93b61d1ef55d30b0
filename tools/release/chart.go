package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// writeChart packs the chart under the release's version, whose image it installs. Helm's
// own packager writes the time of day into it.
func (r *release) writeChart() error {
	chart, err := loader.Load(filepath.Join(r.root, "deploy", "helm", "anteroom"))
	if err != nil {
		return err
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = r.version, r.version
	if err := chart.Validate(); err != nil {
		return err
	}
	metadata, err := yaml.Marshal(chart.Metadata)
	if err != nil {
		return err
	}
	var entries []entry
	for _, f := range chart.Raw { // what .helmignore leaves, in the order of names
		body := f.Data
		if f.Name == "Chart.yaml" {
			body = metadata
		}
		e := entry{filepath.Join(r.work, "chart", filepath.FromSlash(f.Name)), f.Name, 0o644}
		if err := errors.Join(os.MkdirAll(filepath.Dir(e.from), 0o755), os.WriteFile(e.from, body, 0o600)); err != nil {
			return err
		}
		entries = append(entries, e)
	}
	return r.tar(fmt.Sprintf("anteroom-%s.tgz", r.version), chart.Name(), entries)
}
