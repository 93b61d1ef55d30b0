package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

const compose = "../../deploy/compose/compose.yaml"

// loadCompose reads a Compose file as docker compose does, by the schema of its
// specification. What the file asks of the environment is in env.
func loadCompose(t *testing.T, file string, env ...string) (*types.Project, error) {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithWorkingDirectory(filepath.Dir(compose)))
	if err != nil {
		return nil, err
	}
	return o.LoadProject(t.Context())
}

var composeEnv = []string{"ANTEROOM_VERSION=1.2.3", "ANTEROOM_CLUSTER_KEY=pXgYHUIMdjBvrnbyqTGXeXLe3d1IODYI6AQbPiQdSAA=", "ANTEROOM_ADMIN_TOKEN=0123456789abcdef0123456789abcdef"}

func TestTheComposeFileHasAllThatItNames(t *testing.T) {
	p, err := loadCompose(t, compose, composeEnv...)
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`^[a-z/]+:v?[0-9]+\.[0-9]+\.[0-9]+$`)
	volumes, ports := map[string]string{}, map[string]string{}
	for name, s := range p.Services {
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %q has no version", name, s.Image)
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				if other := volumes[v.Source]; other != "" {
					t.Errorf("%s and %s share the volume %s", name, other, v.Source)
				}
				volumes[v.Source] = name
			} else if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s: %s: %v; read only: %v", name, v.Source, err, v.ReadOnly)
			}
		}
		for _, port := range s.Ports {
			if other := ports[port.Published]; other != "" || port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s of %q, which %q has", name, port.Published, port.HostIP, other)
			}
			ports[port.Published] = name
		}
	}
	if want := []string{"grafana", "node-1", "node-2", "node-3", "prometheus", "shop"}; !slices.Equal(p.ServiceNames(), want) {
		t.Errorf("services %q, want %q", p.ServiceNames(), want)
	}
}

func TestAComposeFileWithAMistakeIsRefused(t *testing.T) {
	text := string(read(t, compose))
	for mistake, want := range map[string]string{
		"    readonly: true\n":         "services.other.readonly",
		"    ports: [\"a:b\"]\n":       "invalid containerPort: b",
		"    depends_on: [database]\n": "depends on undefined service",
	} {
		file := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(text, "\nsecrets:\n", "\n  other:\n    image: other:1.2.3\n"+mistake+"\nsecrets:\n", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadCompose(t, file, composeEnv...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %q", mistake, err, want)
		}
	}
	if _, err := loadCompose(t, compose); err == nil || !strings.Contains(err.Error(), "say which image make release has made") {
		t.Errorf("without an environment: %v", err)
	}
}

// takesCompose: the nodes of the Compose file take the configuration that it mounts,
// and who watches them finds them.
func takesCompose(t *testing.T, program string) {
	p, err := loadCompose(t, compose, composeEnv...)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for name, s := range p.Services {
		if !strings.HasPrefix(name, "node-") {
			continue
		}
		targets = append(targets, s.Hostname+":9090")
		check := exec.Command(program, "config", "check", filepath.Join(s.Volumes[0].Source, "anteroom.yaml"))
		check.Env = append(os.Environ(), "ANTEROOM_NODE_ID="+s.Hostname, "ANTEROOM_NODE_DATA="+filepath.Join(t.TempDir(), "data"))
		for key, value := range s.Environment {
			check.Env = append(check.Env, key+"="+*value)
		}
		if said, err := check.CombinedOutput(); err != nil || !strings.Contains(string(said), "good: "+name+", founds a cluster with 3 nodes") {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if said, err := exec.Command(program, append(s.Command, "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", s.Command, err, said)
		}
	}
	if said, err := exec.Command(program, append(p.Services["shop"].Command, "--help")...).CombinedOutput(); err != nil || !strings.Contains(string(said), "small shop") {
		t.Errorf("the shop: %v: %s", err, said)
	}
	var prometheus struct {
		ScrapeConfigs []struct {
			Authorization struct {
				File string `json:"credentials_file"`
			} `json:"authorization"`
			Static []struct{ Targets []string } `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal(read(t, "../../deploy/compose/prometheus.yml"), &prometheus); err != nil {
		t.Fatal(err)
	}
	slices.Sort(targets)
	scrape := prometheus.ScrapeConfigs[0]
	if got := scrape.Static[0].Targets; !slices.Equal(got, targets) {
		t.Errorf("Prometheus looks at %q, and the nodes are %q", got, targets)
	}
	if got, want := scrape.Authorization.File, "/run/secrets/"+p.Services["prometheus"].Secrets[0].Source; got != want {
		t.Errorf("Prometheus reads its token from %s, and it is at %s", got, want)
	}
}
