// Deploy writes what in deploy/ is made of something else there:
//
//	go -C tools run ./deploy
//
// deploy/kubernetes/anteroom.yaml is the chart, rendered with the values beside it,
// for who does without Helm; the chart's alerts are those for Prometheus.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

func main() {
	made, err := makeAll("../deploy")
	for name, body := range made {
		if err == nil {
			err = os.WriteFile(name, body, 0o644) //nolint:gosec // everybody may read it
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

// makeAll returns the files by their names.
func makeAll(root string) (map[string][]byte, error) {
	chart := filepath.Join(root, "helm", "anteroom")
	alerts, err := os.ReadFile(filepath.Join(root, "prometheus", "alerts.yaml"))
	if err != nil {
		return nil, err
	}
	values, err := os.ReadFile(filepath.Join(root, "kubernetes", "values.yaml"))
	if err != nil {
		return nil, err
	}
	rendered, err := render(chart, values)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		filepath.Join(chart, "files", "alerts.yaml"):       alerts,
		filepath.Join(root, "kubernetes", "anteroom.yaml"): append([]byte(heading), ofHelm.ReplaceAll(rendered, nil)...),
	}, nil
}

const heading = `# What Kubernetes needs for three nodes. It is made of deploy/helm/anteroom and of
# values.yaml beside it, by: go -C tools run ./deploy
# docs/kubernetes.md says what comes before it, and what to change.
`

// ofHelm are labels that say that Helm has made something.
var ofHelm = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart):.*\n`)

// render returns the manifests that helm template would print, in the order of their files.
func render(directory string, text []byte) ([]byte, error) {
	chart, err := loader.Load(directory)
	if err != nil {
		return nil, err
	}
	values, err := loader.LoadValues(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	o := common.ReleaseOptions{Name: "anteroom", Namespace: "default", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, o, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, body := range files {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(body) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(files[name]))
	}
	return out.Bytes(), nil
}
