package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	envoy "github.com/envoyproxy/gateway/api/v1alpha1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// istioPolicy is what Istio decodes by a message of protobuf.
type istioPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            json.RawMessage `json:"spec"`
}

// snippetsFilter and middleware have types that no module can be had of; Traefik itself reads
// what is in the latter, in internal/proxies.
type snippetsFilter struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Snippets []struct{ Context, Value string } `json:"snippets"`
	} `json:"spec"`
}

type middleware struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ForwardAuth map[string]any `json:"forwardAuth"`
	} `json:"spec"`
}

// strictly decodes a part of a manifest into a message.
func strictly(t *testing.T, part []byte, into proto.Message) {
	t.Helper()
	if err := protojson.Unmarshal(part, into); err != nil { // which knows no key that the message does not
		t.Errorf("%T: %v", into, err)
	}
}

// What the recipes say is of the types of those who read it: a misspelled key would be dropped
// by the API server, or keep all of a mesh from its configuration.
func TestRecipesAreOfTheirTypes(t *testing.T) {
	for name, want := range map[string][]string{
		"envoy-gateway":        {"HTTPRoute site", "HTTPRoute anteroom", "SecurityPolicy anteroom"},
		"istio":                {"HTTPRoute site", "HTTPRoute anteroom", "AuthorizationPolicy anteroom"},
		"nginx-gateway-fabric": {"HTTPRoute site", "HTTPRoute anteroom", "SnippetsFilter anteroom"},
		"traefik-kubernetes":   {"HTTPRoute site", "HTTPRoute anteroom", "Middleware anteroom"},
	} {
		var got []string
		for _, text := range bytes.Split(read(t, "../../examples/"+name+"/anteroom.yaml"), []byte("---\n")) {
			var kind struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(text, &kind); err != nil {
				t.Fatal(err)
			}
			into := map[string]meta.Object{
				"gateway.networking.k8s.io/v1 HTTPRoute":        &gateway.HTTPRoute{},
				"gateway.envoyproxy.io/v1alpha1 SecurityPolicy": &envoy.SecurityPolicy{},
				"security.istio.io/v1 AuthorizationPolicy":      &istioPolicy{},
				"gateway.nginx.org/v1alpha1 SnippetsFilter":     &snippetsFilter{},
				"traefik.io/v1alpha1 Middleware":                &middleware{},
			}[kind.APIVersion+" "+kind.Kind]
			if into == nil {
				t.Fatalf("%s: %s %s: nobody has said of which type that is", name, kind.APIVersion, kind.Kind)
			}
			if err := yaml.UnmarshalStrict(text, into); err != nil {
				t.Errorf("%s: %s: %v", name, kind.Kind, err)
			}
			got = append(got, kind.Kind+" "+into.GetName())
			switch o := into.(type) {
			case *istioPolicy:
				strictly(t, o.Spec, &security.AuthorizationPolicy{})
			case *envoy.SecurityPolicy:
				fits(t, o.Spec.ExtAuth)
			case *gateway.HTTPRoute:
				if o.Name == "anteroom" && *o.Spec.Rules[0].Matches[0].Path.Value != "/_anteroom" {
					t.Errorf("%s: the nodes' own requests are not for them: %+v", name, o.Spec.Rules)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var values struct {
		MeshConfig json.RawMessage `json:"meshConfig"`
	}
	if err := yaml.UnmarshalStrict(read(t, "../../examples/istio/mesh.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	var m mesh.MeshConfig
	strictly(t, values.MeshConfig, &m)
	p := m.GetExtensionProviders()[0].GetEnvoyExtAuthzHttp()
	if p.GetFailOpen() || len(p.GetHeadersToDownstreamOnDeny()) > 0 || !slices.Equal(p.GetHeadersToDownstreamOnAllow(), []string{"set-cookie"}) || p.GetTimeout().GetSeconds() < 5 {
		t.Errorf("Istio's provider: %v", p)
	}
}

// fits: Envoy Gateway shows a visitor no header of a yes, so it has to ask where none is needed.
// The headers are those that Envoy's own example lists.
func fits(t *testing.T, a *envoy.ExtAuth) {
	t.Helper()
	if *a.FailOpen || a.GRPC != nil || !strings.HasSuffix(*a.HTTP.Path, "/auth-only") || !slices.Equal(a.HTTP.HeadersToBackend, []string{"X-Anteroom-Pass"}) {
		t.Errorf("Envoy Gateway: %+v", a)
	}
	for line := range strings.Lines(string(read(t, "../../examples/envoy/envoy-http.yaml"))) {
		header, listed := strings.CutPrefix(strings.TrimSpace(line), "- exact: ")
		if listed && !slices.ContainsFunc(a.HeadersToExtAuth, func(h string) bool { return strings.EqualFold(h, header) }) {
			t.Errorf("Envoy Gateway does not send %s", header)
		}
	}
}
