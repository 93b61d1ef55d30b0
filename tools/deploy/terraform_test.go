package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// terraform is what the example says to the provider, by the provider's names.
type terraform struct {
	Provider struct {
		URI      string            `json:"uri"`
		Token    string            `json:"bearer_token"`
		Headers  map[string]string `json:"headers"`
		ID       string            `json:"id_attribute"`
		Create   string            `json:"create_method"`
		Returns  bool              `json:"write_returns_object"`
		TestPath string            `json:"test_path"`
	}
	Room struct {
		Path       string `json:"path"`
		CreatePath string `json:"create_path"`
		Additions  bool   `json:"ignore_server_additions"`
		Data       string `json:"data"`
	}
	data map[string]any
}

// readTerraform reads the example. A key that is not named above fails the test: it would not be tried.
func readTerraform(t *testing.T, variables map[string]string) *terraform {
	t.Helper()
	const name = "../../examples/terraform/main.tf"
	f, wrong := hclparse.NewParser().ParseHCL(read(t, name), name)
	if wrong.HasErrors() {
		t.Fatal(wrong)
	}
	values := map[string]cty.Value{}
	for k, v := range variables {
		values[k] = cty.StringVal(v)
	}
	ctx := &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(values)},
		Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc},
	}
	var c terraform
	declared := map[string]bool{}
	for _, b := range f.Body.(*hclsyntax.Body).Blocks {
		var into any
		switch b.Type + " " + strings.Join(b.Labels, " ") {
		case "provider restapi":
			into = &c.Provider
		case "resource restapi_object shop":
			into = &c.Room
		case "terraform ":
			continue
		default:
			if b.Type != "variable" {
				t.Fatalf("%s %q: nobody has said what that is", b.Type, b.Labels)
			}
			declared[b.Labels[0]] = true
			continue
		}
		all := map[string]json.RawMessage{}
		for key, a := range b.Body.Attributes {
			v, wrong := a.Expr.Value(ctx)
			if wrong.HasErrors() {
				t.Fatal(wrong)
			}
			text, err := ctyjson.Marshal(v, v.Type())
			if err != nil {
				t.Fatal(err)
			}
			all[key] = text
		}
		text, _ := json.Marshal(all) // of what has just been marshalled
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s: %v", b.Type, err)
		}
	}
	for k := range variables {
		if !declared[k] {
			t.Errorf("the variable %s is not declared", k)
		}
	}
	if err := json.Unmarshal([]byte(c.Room.Data), &c.data); err != nil {
		t.Fatal(err)
	}
	return &c
}

// send is a request as the provider makes it. An answer with 300 and more is an error to it.
func (c *terraform) send(t *testing.T, method, path string, body any) (status int, said map[string]any) {
	t.Helper()
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body) // of what came as JSON
	}
	id, _ := c.data[c.Provider.ID].(string)
	r, err := http.NewRequestWithContext(t.Context(), method, c.Provider.URI+strings.ReplaceAll(path, "{id}", id), bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Provider.Token)
	for k, v := range c.Provider.Headers {
		r.Header.Set(k, v)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &said); len(text) > 0 && err != nil {
		t.Fatalf("%s %s: %d %s", method, path, a.StatusCode, text)
	}
	return a.StatusCode, said
}

// plan is what the provider finds changed: keys of data that the room has otherwise, as it
// compares them, and others only where they count.
func (c *terraform) plan(room map[string]any) (changed []string) {
	for key, want := range c.data {
		if !reflect.DeepEqual(want, room[key]) {
			changed = append(changed, key)
		}
	}
	if !c.Room.Additions {
		for key := range room {
			if _, ours := c.data[key]; !ours {
				changed = append(changed, key)
			}
		}
	}
	slices.Sort(changed)
	return changed
}

// The example does what it says, at a node: apply makes the room, a second plan finds nothing to
// do, a change is made, one that somebody else made is found and taken back, destroy deletes it.
func TestTheExampleForTerraformKeepsARoom(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	admin := startNode(t, token)
	c := readTerraform(t, map[string]string{"admin": admin, "token": token})
	p, room := c.Provider, c.Room
	of := room.Path + "/{id}" // the provider's default for all but making
	if !p.Returns || p.Create != http.MethodPut {
		t.Fatalf("%+v", p)
	}
	if status, _ := c.send(t, http.MethodGet, p.TestPath, nil); status != http.StatusOK {
		t.Fatalf("the provider's test: %d", status)
	}
	if status, said := c.send(t, http.MethodGet, of, nil); status != http.StatusNotFound || said["code"] != "room_unknown" {
		t.Fatalf("before: %d %v", status, said)
	}
	check := func(what string, status int, said map[string]any, want int, changed ...string) {
		t.Helper()
		if got := c.plan(said); status != want || !slices.Equal(got, changed) || said[p.ID] != c.data[p.ID] {
			t.Errorf("%s: %d, want %d; %q would change, want %q; the room: %v", what, status, want, got, changed, said)
		}
	}
	status, said := c.send(t, p.Create, room.CreatePath, c.data)
	check("made", status, said, http.StatusCreated)
	status, said = c.send(t, http.MethodGet, of, nil)
	check("read", status, said, http.StatusOK)

	c.data["total_active_users"] = 250.0
	status, said = c.send(t, http.MethodGet, of, nil)
	check("with a change in the file", status, said, http.StatusOK, "total_active_users")
	status, said = c.send(t, http.MethodPut, of, c.data)
	check("changed", status, said, http.StatusOK)

	if status, said = c.send(t, http.MethodPatch, of, map[string]any{"session_duration": "1m", "total_active_users": 5}); status != http.StatusOK {
		t.Fatalf("somebody else's change: %d %v", status, said)
	}
	status, said = c.send(t, http.MethodGet, of, nil)
	check("changed by somebody else", status, said, http.StatusOK, "session_duration", "total_active_users")
	status, said = c.send(t, http.MethodPut, of, c.data)
	check("taken back", status, said, http.StatusOK)

	wrong := maps.Clone(c.data)
	wrong["total_active_users"] = -1
	if status, said := c.send(t, http.MethodPut, of, wrong); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(said["detail"]), "Nothing was changed") {
		t.Errorf("a mistake: %d %v", status, said)
	}
	if status, said = c.send(t, http.MethodDelete, of, nil); status != http.StatusNoContent {
		t.Errorf("deleted: %d %v", status, said)
	}
	if status, said = c.send(t, http.MethodGet, of, nil); status != http.StatusNotFound {
		t.Errorf("afterwards: %d %v", status, said)
	}
}

// startNode starts a node of its own, and returns where its admin API is.
func startNode(t *testing.T, token string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "anteroom")
	build := exec.Command("go", "build", "-o", program, "./cmd/anteroom")
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, said)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close() // for the node
	file := filepath.Join(dir, "anteroom.yaml")
	text := "node: {id: node-1, gateway: '127.0.0.1:0', admin: '" + at + "', grpc: none, gossip: '127.0.0.1:0', peer: '127.0.0.1:0'}\nsecurity: {admin_token: " + token + "}\n" +
		"rooms: [{name: other, routes: [{host: other.example.com}], total_active_users: 1}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "serve", "--config", file)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it says that it was killed
		if t.Failed() {
			t.Logf("the node:\n%s", said.String())
		}
	})
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for enough := time.After(20 * time.Second); ; {
		if a, err := http.Get("http://" + at + "/readyz"); err == nil {
			_ = a.Body.Close()
			if a.StatusCode == http.StatusOK {
				return "http://" + at
			}
		}
		select {
		case <-look.C:
		case <-enough:
			t.Fatal("the node is not ready after 20 s")
		}
	}
}
