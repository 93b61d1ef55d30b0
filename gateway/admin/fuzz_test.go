package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/gateway"
)

// FuzzMergePatch changes anything by anything: what comes out is an object, in
// which a key that is null in the change is not, and every other one is.
func FuzzMergePatch(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":2,"d":3}}`, `{"a":null,"b":{"c":null,"e":[]},"f":"g"}`)
	f.Add(`{}`, `{"a":{"b":{"c":{}}}}`)
	f.Add(`{"a":[{}]}`, `{"a":{"b":1}}`)
	f.Add(`null`, `[]`)
	f.Fuzz(func(t *testing.T, onto, patch string) {
		merged, err := mergePatch([]byte(onto), []byte(patch))
		if err != nil {
			return
		}
		var out, change map[string]json.RawMessage
		if json.Unmarshal(merged, &out) != nil || out == nil || json.Unmarshal([]byte(patch), &change) != nil {
			t.Fatalf("%s onto %s is %s", patch, onto, merged)
		}
		for key, v := range change {
			if _, has := out[key]; has == (strings.TrimSpace(string(v)) == "null") {
				t.Errorf("%s onto %s is %s: %q is wrong", patch, onto, merged, key)
			}
		}
	})
}

// FuzzProbe asks about anything: whatever is taken for a request can be looked for.
func FuzzProbe(f *testing.F) {
	f.Add("https://shop.example.com/a?b=c", "get", "192.0.2.7", "Cookie: staff=yes")
	f.Add("http://[::1]:8080", "", "::ffff:192.0.2.7", "")
	f.Add("//host/%2f..;/x", "POST", "fe80::1%eth0", ":")
	f.Fuzz(func(t *testing.T, url, method, ip, header string) {
		q, wrong := Check{URL: url, Method: method, IP: ip, Headers: []string{header}}.Probe()
		if len(wrong) > 0 {
			return
		}
		if q.URL == nil || q.URL.Host == "" || q.Method == "" || ip != "" && !q.From.IsValid() || len(q.Header) != 1 {
			t.Fatalf("%q %q %q %q: %+v", url, method, ip, header, q)
		}
		found, err := gateway.Find(gateway.Config{Prefix: "/_anteroom", Rooms: []gateway.Room{{Name: "shop", Routes: []gateway.Route{{Host: "*", Path: "/"}}}}}, q)
		if err != nil || found.Fate == gateway.FateNone {
			t.Errorf("%q: %v, %+v", url, err, found)
		}
		if _, err := json.Marshal(CheckedOf(q, found)); err != nil {
			t.Error(err)
		}
		if q.Method == http.MethodGet && strings.ToUpper(method) != http.MethodGet && method != "" {
			t.Errorf("%q became GET", method)
		}
	})
}
