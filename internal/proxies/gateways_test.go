package proxies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// gateways are the proxies of All, and those that Debian does not have, or that are told by
// manifests of Kubernetes: then what reads those is not here, and the program gets what that
// makes of them.
func gateways() []Proxy {
	envoy := func(_, file string) []string {
		return []string{"-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"}
	}
	traefik := func(_, file string) []string { return []string{"--configFile=" + file} }
	return append(All(),
		Proxy{Name: "traefik", Status: 429, room: "anteroom.yaml", program: "traefik", args: traefik, made: traefikByFiles},
		Proxy{Name: "traefik in Kubernetes", Status: 429, room: "anteroom.yaml", program: "traefik", args: traefik, made: traefikByManifests},
		Proxy{Name: "envoy over HTTP", Status: 429, room: "anteroom.yaml", program: "envoy", args: envoy, made: envoyOverHTTP},
		Proxy{Name: "envoy over gRPC", Status: 429, room: "anteroom.yaml", program: "envoy", args: envoy, made: envoyOverGRPC},
		Proxy{Name: "envoy gateway", Status: 429, room: "anteroom.yaml", program: "envoy", args: envoy, made: envoyGateway, apart: true},
		Proxy{Name: "istio", Status: 429, room: "anteroom.yaml", program: "envoy", args: envoy, made: istio},
		Proxy{
			Name: "nginx gateway fabric", Status: 200, room: "anteroom.yaml", program: "nginx", wrap: nginxAround, made: nginxGatewayFabric,
			args: All()[0].args,
		},
	)
}

// each runs a test before each proxy.
func each(t *testing.T, test func(t *testing.T, p Proxy)) {
	for _, p := range gateways() {
		t.Run(strings.ReplaceAll(p.Name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// port of an address.
func port(t testing.TB, address string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func envoyOverHTTP(t testing.TB, at places) []file {
	t.Helper()
	return []file{{"envoy.yaml", Replaced(t, Example(t, "envoy/envoy-http.yaml"), map[string]string{
		"address: 0.0.0.0, port_value: 80}":     "address: 127.0.0.1, port_value: " + port(t, at.front) + "}",
		"address: 127.0.0.1, port_value: 9000}": "address: 127.0.0.1, port_value: " + port(t, at.site) + "}",
		"address: 127.0.0.1, port_value: 8081}": "address: 127.0.0.1, port_value: " + port(t, at.nodes[0].Gateway) + "}",
		"address: 127.0.0.1, port_value: 8082}": "address: 127.0.0.1, port_value: " + port(t, at.nodes[1].Gateway) + "}",
	})}}
}

func envoyOverGRPC(t testing.TB, at places) []file {
	t.Helper()
	return []file{{"envoy.yaml", Replaced(t, Example(t, "envoy/envoy-grpc.yaml"), map[string]string{
		"address: 0.0.0.0, port_value: 80}":     "address: 127.0.0.1, port_value: " + port(t, at.front) + "}",
		"address: 127.0.0.1, port_value: 9000}": "address: 127.0.0.1, port_value: " + port(t, at.site) + "}",
		"address: 127.0.0.1, port_value: 8081}": "address: 127.0.0.1, port_value: " + port(t, at.nodes[0].Gateway) + "}",
		"address: 127.0.0.1, port_value: 8082}": "address: 127.0.0.1, port_value: " + port(t, at.nodes[1].Gateway) + "}",
		"address: 127.0.0.1, port_value: 7002}": "address: 127.0.0.1, port_value: " + port(t, at.nodes[0].GRPC) + "}",
		"address: 127.0.0.1, port_value: 7003}": "address: 127.0.0.1, port_value: " + port(t, at.nodes[1].GRPC) + "}",
	})}}
}

func traefikByFiles(t testing.TB, at places) []file {
	t.Helper()
	return []file{
		{"traefik.yml", Replaced(t, Example(t, "traefik/traefik.yml"), map[string]string{`":80"`: `"` + at.front + `"`, "filename: dynamic.yml": "filename: " + here + "/dynamic.yml"})},
		{"dynamic.yml", Replaced(t, Example(t, "traefik/dynamic.yml"), map[string]string{
			"127.0.0.1:9000": at.site, "http://127.0.0.1:8081/_anteroom": "http://" + at.nodes[0].Gateway + "/_anteroom",
			"url: http://127.0.0.1:8081": "url: http://" + at.nodes[0].Gateway, "127.0.0.1:8082": at.nodes[1].Gateway,
		})},
	}
}

// manifest is what the recipes have of one.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Rules []struct {
			Matches     []struct{ Path struct{ Type, Value string } }
			BackendRefs []struct{ Name string } `yaml:"backendRefs"`
			Filters     []struct {
				Type                  string
				ExtensionRef          struct{ Kind, Name string } `yaml:"extensionRef"`
				RequestHeaderModifier struct{ Remove []string }   `yaml:"requestHeaderModifier"`
			}
			Timeouts struct{ Request string }
			To       []struct {
				Operation struct {
					Hosts    []string
					NotPaths []string `yaml:"notPaths"`
				}
			}
		}
		ForwardAuth map[string]any `yaml:"forwardAuth"`
		Snippets    []struct{ Context, Value string }
		Action      string
		Provider    struct{ Name string }
	}
}

// manifests reads those of a recipe.
func manifests(t testing.TB, name string) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	d := yaml.NewDecoder(bytes.NewReader([]byte(Example(t, name))))
	for {
		var m manifest
		if d.Decode(&m) != nil {
			return all
		}
		all[m.Kind+" "+m.Metadata.Name] = m
	}
}

// marshal is v for a program that reads JSON, or YAML.
func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const service = "anteroom.default.svc.cluster.local" // of the nodes, in the manifests

// traefikByManifests has the Middleware as it is for a middleware of Traefik's, which are of the
// same keys: a key that Traefik does not know it refuses.
func traefikByManifests(t testing.TB, at places) []file {
	t.Helper()
	all := manifests(t, "traefik-kubernetes/anteroom.yaml")
	middlewares, routers := map[string]any{}, map[string]any{}
	for _, m := range all {
		switch m.Kind {
		case "Middleware":
			address := m.Spec.ForwardAuth["address"].(string)
			m.Spec.ForwardAuth["address"] = Replaced(t, address, map[string]string{service: at.nodes[0].Gateway})
			middlewares[m.Metadata.Name] = map[string]any{"forwardAuth": m.Spec.ForwardAuth}
		case "HTTPRoute":
			r := m.Spec.Rules[0]
			router := map[string]any{"rule": "PathPrefix(`" + r.Matches[0].Path.Value + "`)", "service": r.BackendRefs[0].Name}
			if len(r.Filters) == 1 && r.Filters[0].ExtensionRef.Kind == "Middleware" {
				router["middlewares"] = []string{r.Filters[0].ExtensionRef.Name}
			}
			routers[m.Metadata.Name] = router
		}
	}
	servers := func(all ...string) map[string]any {
		var urls []map[string]string
		for _, a := range all {
			urls = append(urls, map[string]string{"url": "http://" + a})
		}
		return map[string]any{"loadBalancer": map[string]any{"servers": urls}}
	}
	return []file{
		{"traefik.yml", "entryPoints: {web: {address: \"" + at.front + "\"}}\nproviders: {file: {filename: " + here + "/dynamic.yml}}\n"},
		{"dynamic.yml", marshal(t, map[string]any{"http": map[string]any{
			"middlewares": middlewares, "routers": routers,
			"services": map[string]any{"site": servers(at.site), "anteroom": servers(at.nodes[0].Gateway, at.nodes[1].Gateway)},
		}})},
	}
}

// nginxGatewayFabric is a server as the controller writes it: its own lines for each route, and
// the snippets where it includes them.
func nginxGatewayFabric(t testing.TB, at places) []file {
	t.Helper()
	all := manifests(t, "nginx-gateway-fabric/anteroom.yaml")
	var b strings.Builder
	fmt.Fprintf(&b, "upstream default_site_80 { server %s; keepalive 16; }\nupstream default_anteroom_80 { server %s; server %s; keepalive 16; }\n",
		at.site, at.nodes[0].Gateway, at.nodes[1].Gateway)
	b.WriteString("map $http_upgrade $connection_upgrade { default upgrade; '' ''; }\nmap $http_host $gw_api_compliant_host { '' $host; default $http_host; }\n")
	fmt.Fprintf(&b, "server {\n listen %s;\n", at.front)
	snippets := func(name, context string) {
		for _, s := range all["SnippetsFilter "+name].Spec.Snippets {
			if s.Context == context {
				b.WriteString(Replaced(t, s.Value, map[string]string{}))
			}
		}
	}
	for _, route := range []string{"site", "anteroom"} {
		r := all["HTTPRoute "+route].Spec.Rules[0]
		name := ""
		if len(r.Filters) == 1 && r.Filters[0].ExtensionRef.Kind == "SnippetsFilter" {
			name = r.Filters[0].ExtensionRef.Name
		}
		snippets(name, "http.server")
		paths := []string{r.Matches[0].Path.Value}
		if paths[0] != "/" {
			paths = []string{paths[0] + "/", "= " + paths[0]}
		}
		for _, path := range paths {
			fmt.Fprintf(&b, "location %s {\n", path)
			snippets(name, "http.server.location")
			b.WriteString(`proxy_http_version 1.1;
proxy_set_header Host "$gw_api_compliant_host";
proxy_set_header X-Forwarded-For "$proxy_add_x_forwarded_for";
proxy_set_header X-Real-IP "$remote_addr";
proxy_set_header X-Forwarded-Proto "$scheme";
proxy_set_header X-Forwarded-Host "$host";
proxy_set_header X-Forwarded-Port "$server_port";
proxy_set_header Upgrade "$http_upgrade";
proxy_set_header Connection "$connection_upgrade";
`)
			fmt.Fprintf(&b, "proxy_pass http://default_%s_80$request_uri;\n}\n", r.BackendRefs[0].Name)
		}
	}
	b.WriteString("}\n")
	return []file{{"anteroom.conf", Replaced(t, b.String(), map[string]string{service: at.nodes[0].Gateway})}}
}

// cluster is one of Envoy's.
func cluster(t testing.TB, name string, at ...string) map[string]any {
	t.Helper()
	var endpoints []any
	for _, a := range at {
		endpoints = append(endpoints, map[string]any{"endpoint": map[string]any{"address": socket(t, a)}})
	}
	return map[string]any{"name": name, "type": "STATIC", "load_assignment": map[string]any{"cluster_name": name, "endpoints": []any{map[string]any{"lb_endpoints": endpoints}}}}
}

func socket(t testing.TB, at string) map[string]any {
	t.Helper()
	return map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": json.Number(port(t, at))}}
}

const (
	managerType = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	routerType  = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
	authzType   = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"
	rbacType    = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
)

// istio is an Envoy as Istio's gateways are: that a policy wants a request to be asked about is
// what the filter RBAC says in its metadata, and whom and how is the provider's.
func istio(t testing.TB, at places) []file {
	t.Helper()
	all := manifests(t, "istio/anteroom.yaml")
	policy := all["AuthorizationPolicy anteroom"].Spec
	var mesh struct {
		MeshConfig struct {
			ExtensionProviders []struct {
				Name string
				HTTP struct {
					Service       string
					Port          int
					Timeout       string
					FailOpen      bool     `yaml:"failOpen"`
					StatusOnError string   `yaml:"statusOnError"`
					PathPrefix    string   `yaml:"pathPrefix"`
					Asks          []string `yaml:"includeRequestHeadersInCheck"`
					Upstream      []string `yaml:"headersToUpstreamOnAllow"`
					OnAllow       []string `yaml:"headersToDownstreamOnAllow"`
				} `yaml:"envoyExtAuthzHttp"`
			} `yaml:"extensionProviders"`
		} `yaml:"meshConfig"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(Example(t, "istio/mesh.yaml")), &mesh, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	p := mesh.MeshConfig.ExtensionProviders[0]
	if policy.Action != "CUSTOM" || policy.Provider.Name != p.Name || p.HTTP.Service != service || p.HTTP.Port != 80 || p.HTTP.StatusOnError != "503" {
		t.Fatalf("%+v does not fit to %+v", policy, p)
	}
	patterns := func(all []string) map[string]any { // abc, abc*, *abc
		var made []any
		for _, s := range all {
			kind := "exact"
			if before, ok := strings.CutSuffix(s, "*"); ok {
				kind, s = "prefix", before
			}
			made = append(made, map[string]any{kind: s, "ignore_case": true})
		}
		return map[string]any{"patterns": made}
	}
	either := func(field string, all []any) map[string]any {
		return map[string]any{"or_" + field: map[string]any{field: all}}
	}
	operation := policy.Rules[0].To[0].Operation
	var hosts, not []any
	for _, h := range operation.Hosts {
		kind := "exact"
		if before, ok := strings.CutSuffix(h, "*"); ok {
			kind, h = "prefix", before
		}
		h = strings.ReplaceAll(h, "shop.example.com", "127.0.0.1")
		hosts = append(hosts, map[string]any{"header": map[string]any{"name": ":authority", "string_match": map[string]any{kind: h, "ignore_case": true}}})
	}
	for _, path := range operation.NotPaths {
		not = append(not, map[string]any{"url_path": map[string]any{"path": map[string]any{"prefix": strings.TrimSuffix(path, "*")}}})
	}
	rule := map[string]any{"and_rules": map[string]any{"rules": []any{either("rules", hosts), map[string]any{"not_rule": either("rules", not)}}}}
	filters := []any{
		map[string]any{"name": "envoy.filters.http.rbac", "typed_config": map[string]any{
			"@type": rbacType, "shadow_rules_stat_prefix": "istio_ext_authz_",
			"shadow_rules": map[string]any{"action": "DENY", "policies": map[string]any{
				"istio-ext-authz-" + p.Name: map[string]any{"permissions": []any{rule}, "principals": []any{map[string]any{"any": true}}},
			}},
		}},
		map[string]any{"name": "envoy.filters.http.ext_authz", "typed_config": map[string]any{
			"@type": authzType, "transport_api_version": "V3", "failure_mode_allow": p.HTTP.FailOpen, "status_on_error": map[string]any{"code": 503},
			"allowed_headers": patterns(p.HTTP.Asks),
			"http_service": map[string]any{
				"path_prefix":            p.HTTP.PathPrefix,
				"server_uri":             map[string]any{"uri": "http://" + service, "cluster": "anteroom", "timeout": p.HTTP.Timeout},
				"authorization_response": map[string]any{"allowed_upstream_headers": patterns(p.HTTP.Upstream), "allowed_client_headers_on_success": patterns(p.HTTP.OnAllow)},
			},
			"filter_enabled_metadata": map[string]any{
				"filter": "envoy.filters.http.rbac", "path": []any{map[string]any{"key": "istio_ext_authz_shadow_effective_policy_id"}},
				"value": map[string]any{"string_match": map[string]any{"prefix": "istio-ext-authz-" + p.Name}},
			},
		}},
		map[string]any{"name": "envoy.filters.http.router", "typed_config": map[string]any{"@type": routerType}},
	}
	var routes []any
	for _, name := range []string{"anteroom", "site"} {
		r := all["HTTPRoute "+name].Spec.Rules[0]
		match, action := map[string]any{"prefix": "/"}, map[string]any{"cluster": r.BackendRefs[0].Name}
		if len(r.Matches) > 0 {
			match = map[string]any{"path_separated_prefix": r.Matches[0].Path.Value}
		}
		if r.Timeouts.Request != "" {
			action["timeout"] = r.Timeouts.Request
		}
		routes = append(routes, map[string]any{"match": match, "route": action, "request_headers_to_remove": r.Filters[0].RequestHeaderModifier.Remove})
	}
	return []file{{"envoy.yaml", marshal(t, map[string]any{"static_resources": map[string]any{
		"listeners": []any{map[string]any{"name": "visitors", "address": socket(t, at.front), "filter_chains": []any{map[string]any{"filters": []any{
			map[string]any{"name": "envoy.filters.network.http_connection_manager", "typed_config": map[string]any{
				"@type": managerType, "stat_prefix": "visitors", "use_remote_address": true, "normalize_path": true, "http_filters": filters,
				"route_config": map[string]any{"virtual_hosts": []any{map[string]any{"name": "shop", "domains": []string{"*"}, "routes": routes}}},
			}},
		}}}}},
		"clusters": []any{cluster(t, "site", at.site), cluster(t, "anteroom", at.nodes[0].Gateway, at.nodes[1].Gateway)},
	}})}}
}

// envoyGateway has what Envoy Gateway's own translator has made of the recipe. That is a large
// program, so what it made stands in testdata; ANTEROOM_EGCTL has it made anew.
//
//	go install github.com/envoyproxy/gateway/cmd/egctl@v1.9.1
//	ANTEROOM_E2E=1 ANTEROOM_EGCTL=$(go env GOPATH)/bin/egctl go test ./internal/proxies -run 'Waits/envoy-gateway'
func envoyGateway(t testing.TB, at places) []file {
	t.Helper()
	recipe := Example(t, "envoy-gateway/anteroom.yaml")
	const golden = "testdata/envoy-gateway.json"
	if egctl := os.Getenv("ANTEROOM_EGCTL"); egctl != "" {
		if err := os.WriteFile(golden, []byte(translated(t, egctl, recipe)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Recipe           string
		Listener, Routes map[string]any
		Clusters         []map[string]any
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&made); err != nil {
		t.Fatal(err)
	}
	if made.Recipe != recipe {
		t.Fatalf("%s is of another recipe: see envoyGateway", golden)
	}
	l := made.Listener
	delete(l, "accessLog")
	l["address"] = socket(t, at.front)
	manager := l["defaultFilterChain"].(map[string]any)["filters"].([]any)[0].(map[string]any)["typedConfig"].(map[string]any)
	delete(manager, "rds")
	delete(manager, "accessLog")
	delete(made.Routes, "@type")
	delete(l, "@type")
	manager["routeConfig"] = made.Routes
	var clusters []any
	for _, c := range made.Clusters {
		name := c["name"].(string)
		to := []string{at.site}
		if strings.Contains(name, "/anteroom/") {
			to = []string{at.nodes[0].Gateway, at.nodes[1].Gateway}
		}
		delete(c, "edsClusterConfig")
		delete(c, "@type")
		c["type"], c["loadAssignment"] = "STATIC", cluster(t, name, to...)["load_assignment"]
		clusters = append(clusters, c)
	}
	text := marshal(t, map[string]any{"static_resources": map[string]any{"listeners": []any{l}, "clusters": clusters}})
	return []file{{"envoy.yaml", Replaced(t, text, map[string]string{`"shop.example.com"`: `"127.0.0.1"`})}}
}

// translated is what egctl makes of the recipe, with a Gateway and Services for it.
func translated(t testing.TB, egctl, recipe string) string {
	t.Helper()
	const around = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: eg
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
`
	name := filepath.Join(t.TempDir(), "in.yaml")
	text := around + strings.NewReplacer("{name: site}\nspec", "{name: site, namespace: default}\nspec", "{name: anteroom}\nspec", "{name: anteroom, namespace: default}\nspec").Replace(recipe)
	for i, s := range []string{"site", "anteroom"} {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: default}\nspec: {clusterIP: 10.0.0.%d, ports: [{name: http, port: 80, protocol: TCP}]}\n", s, i+1)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(egctl, "experimental", "translate", "--from", "gateway-api", "--to", "xds", "--type", "all", "--add-missing-resources", "--output", "json", "--file", name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		XDS map[string]struct {
			Configs []struct {
				Clusters  []struct{ Cluster map[string]any } `json:"dynamicActiveClusters"`
				Listeners []struct {
					ActiveState struct{ Listener map[string]any }
				} `json:"dynamicListeners"`
				Routes []struct{ RouteConfig map[string]any } `json:"dynamicRouteConfigs"`
			}
		} `json:"xds"`
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&said); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	made := map[string]any{"recipe": recipe}
	var clusters []any
	for _, all := range said.XDS {
		for _, c := range all.Configs {
			for _, o := range c.Clusters {
				clusters = append(clusters, o.Cluster)
			}
			for _, o := range c.Listeners {
				if o.ActiveState.Listener["defaultFilterChain"] != nil {
					made["listener"] = o.ActiveState.Listener
				}
			}
			for _, o := range c.Routes {
				made["routes"] = o.RouteConfig
			}
		}
	}
	made["clusters"] = clusters
	if made["listener"] == nil || made["routes"] == nil || len(clusters) != 3 {
		t.Fatalf("egctl made something else:\n%.3000s", out)
	}
	return marshal(t, made) + "\n"
}
