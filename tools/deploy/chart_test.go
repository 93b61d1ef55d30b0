package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

const chart = "../../deploy/helm/anteroom"

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sets are the sets of values with golden manifests.
func sets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("values: %v, %v, want five or more", files, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".values.yaml")
	}
	return files
}

func TestWhatIsMadeOfTheChartIsUpToDate(t *testing.T) {
	made, err := makeAll("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		if !bytes.Equal(read(t, name), want) {
			t.Errorf("%s is not what it is made of: run go -C tools run ./deploy", name)
		}
	}
}

func TestTheChartRendersAsItDid(t *testing.T) {
	for _, set := range sets(t) {
		t.Run(set, func(t *testing.T) {
			got, err := render(chart, read(t, "testdata/"+set+".values.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			golden := "testdata/" + set + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := read(t, golden); !bytes.Equal(got, want) {
				t.Errorf("manifests differ from %s; -update writes it anew. They are:\n%s", golden, got)
			}
		})
	}
}

func TestHelmFindsNoFaultWithTheChart(t *testing.T) {
	for _, set := range sets(t) {
		values, err := loader.LoadValues(bytes.NewReader(read(t, "testdata/"+set+".values.yaml")))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(chart, values, "default").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", set, m)
			}
		}
	}
}

// objects decodes manifests into the types of Kubernetes' API, the Gateway API and the
// Prometheus operator, and takes no key that these do not have.
func objects(t *testing.T, manifests []byte) (all []any) {
	t.Helper()
	for _, text := range strings.Split(string(manifests), "---\n")[1:] {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			t.Fatal(err)
		}
		into := map[string]any{
			"apps/v1 StatefulSet":                &apps.StatefulSet{},
			"v1 ConfigMap":                       &core.ConfigMap{},
			"v1 Secret":                          &core.Secret{},
			"v1 Service":                         &core.Service{},
			"policy/v1 PodDisruptionBudget":      &policy.PodDisruptionBudget{},
			"networking.k8s.io/v1 NetworkPolicy": &networking.NetworkPolicy{},
			"networking.k8s.io/v1 Ingress":       &networking.Ingress{},

			"gateway.networking.k8s.io/v1 HTTPRoute":  &gateway.HTTPRoute{},
			"monitoring.coreos.com/v1 PrometheusRule": &monitoring.PrometheusRule{},
			"monitoring.coreos.com/v1 ServiceMonitor": &monitoring.ServiceMonitor{},
		}[kind.APIVersion+" "+kind.Kind]
		if into == nil {
			t.Errorf("%s %s: nobody has said of which type that is", kind.APIVersion, kind.Kind)
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		all = append(all, into)
	}
	return all
}

func one[T any](t *testing.T, all []any) *T {
	t.Helper()
	for _, o := range all {
		if o, ok := o.(*T); ok {
			return o
		}
	}
	t.Fatalf("no %T", new(T))
	return nil
}

func TestManifestsAreOfKubernetesTypes(t *testing.T) {
	seen := map[string]bool{}
	for _, set := range sets(t) {
		all := objects(t, read(t, "testdata/"+set+".golden.yaml"))
		for _, o := range all {
			seen[strings.TrimPrefix(fmt.Sprintf("%T", o), "*")] = true
		}
		s := one[apps.StatefulSet](t, all).Spec
		pod := s.Template.Spec
		c := pod.Containers[0]
		for what, good := range map[string]bool{
			"its nodes start side by side":      s.PodManagementPolicy == apps.ParallelPodManagement,
			"it rolls":                          s.UpdateStrategy.Type == apps.RollingUpdateStatefulSetStrategyType && s.MinReadySeconds > 0,
			"no root":                           *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
			"a profile of seccomp":              pod.SecurityContext.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault,
			"nothing to write to but volumes":   *c.SecurityContext.ReadOnlyRootFilesystem,
			"no rights":                         !*c.SecurityContext.AllowPrivilegeEscalation && slices.Equal(c.SecurityContext.Capabilities.Drop, []core.Capability{"ALL"}),
			"no token of the API":               !*pod.AutomountServiceAccountToken,
			"keys for the group alone":          *pod.Volumes[1].Secret.DefaultMode == 0o440,
			"readiness by /readyz":              c.ReadinessProbe.HTTPGet.Path == "/readyz",
			"life by /healthz":                  c.LivenessProbe.HTTPGet.Path == "/healthz",
			"time to hand over":                 *pod.TerminationGracePeriodSeconds >= c.Lifecycle.PreStop.Sleep.Seconds+10,
			"the selector is that of its pods":  subset(s.Selector.MatchLabels, s.Template.Labels),
			"the service that its nodes are in": serviceOf(all, s.ServiceName) != nil,
		} {
			if !good {
				t.Errorf("%s: not so: %s", set, what)
			}
		}
		if nodes := serviceOf(all, s.ServiceName); nodes == nil || nodes.Spec.ClusterIP != core.ClusterIPNone || !nodes.Spec.PublishNotReadyAddresses || !subset(nodes.Spec.Selector, s.Template.Labels) {
			t.Errorf("%s: %s is %+v: nodes that are not ready would not find one another", set, s.ServiceName, nodes)
		}
	}
	want := []string{
		"v1.ConfigMap", "v1.HTTPRoute", "v1.Ingress", "v1.NetworkPolicy", "v1.PodDisruptionBudget", "v1.PrometheusRule", "v1.Secret",
		"v1.Service", "v1.ServiceMonitor", "v1.StatefulSet",
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("the sets of values make %q, want %q", got, want)
	}
}

func serviceOf(all []any, name string) *core.Service {
	for _, o := range all {
		if s, ok := o.(*core.Service); ok && s.Name == name {
			return s
		}
	}
	return nil
}

// subset reports whether all labels of a are of b.
func subset(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) > 0
}

func TestAWrongValueIsToldByTheSchema(t *testing.T) {
	const good = "secret: {existing: anteroom}\n"
	for _, c := range []struct{ values, want string }{
		{good + "replica: 3", "additional properties 'replica' not allowed"},
		{good + "replicas: three", "/replicas': got string, want integer"},
		{good + "replicas: 0", "/replicas': minimum: got 0, want 1"},
		{good + "service: {type: Loadbalancer}", "/service/type': value must be one of"},
		{good + "rooms: [{name: shop}]", "/rooms/0': missing property 'total_active_users'"},
		{good + `rooms: [{name: "my shop", total_active_users: 5}]`, "/rooms/0/name': 'my shop' does not match pattern"},
		{good + "rooms: {shop: {total_active_users: 5}}", "/rooms': got object, want array"},
		{good + "config: {rooms: []}", "/config': additional properties 'rooms' not allowed"},
		{good + "files: {anteroom.yaml: x}", "invalid propertyName 'anteroom.yaml'"},
		{good + "antiAffinity: hard", "/antiAffinity': value must be one of"},
		{good + "ingress: {enabled: true}", "/ingress/hosts': minItems: got 0, want 1"},
		{good + "httpRoute: {enabled: true}", "/httpRoute/parentRefs': minItems: got 0, want 1"},
		{good + "persistence: {size: 1 GB}", "/persistence/size': '1 GB' does not match pattern"},
		{"secret: {adminToken: short}", "/secret/adminToken': 'short' does not match pattern"},
		// What no schema can say.
		{"replicas: 3", "secret.existing is missing: name a Secret with cluster.key and admin-token"},
		{"secret: {clusterKey: a, adminToken: 0123456789abcdef, signingKeys: true}", "secret.signingKeysJSON is missing"},
		{good + "leave: {drainSeconds: 25}", "leave.graceSeconds is 30, and with drainSeconds of 25 a node takes up to 35"},
	} {
		if _, err := render(chart, []byte(c.values)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %q", c.values, err, c.want)
		}
	}
}

func TestTheChartKnowsEveryPartOfTheConfiguration(t *testing.T) {
	var file map[string]any
	if err := yaml.Unmarshal(read(t, "../../docs/anteroom.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"rooms", "queues"} { // values of their own
		delete(file, key)
	}
	for _, commented := range []string{"country_header", "notifications"} {
		file[commented] = nil
	}
	var schema struct {
		Properties struct {
			Config struct{ Properties map[string]any }
		}
	}
	if err := yaml.Unmarshal(read(t, chart+"/values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	got, want := slices.Sorted(maps.Keys(schema.Properties.Config.Properties)), slices.Sorted(maps.Keys(file))
	if !slices.Equal(got, want) {
		t.Errorf("by deploy/helm/anteroom/values.schema.json config may have %q, and docs/anteroom.yaml has %q: make them the same", got, want)
	}
}
