package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

const roomsConfig = `
prefix: /_anteroom
country_header: CF-IPCountry
rooms:
  - name: shop
    routes: [{host: shop.example.com}, {host: pay.example.com, path: /basket}]
    origin: http://127.0.0.1:9000
    total_active_users: 200
    ip_lists: [{name: office, items: [192.0.2.0/24]}]
    bypass_rules:
      - description: assets
        expression: 'starts_with(http.request.uri.path, "/assets/") and http.request.method in {"GET" "HEAD"}'
      - description: the office
        expression: ip.src in $office
      - {description: "not yet", expression: 'ip.src.country eq "NL"', enabled: false}
  - name: api
    routes: [{host: "*", path: /api}]
    total_active_users: 10
  - {name: news, routes: [{host: news.example.com}], origin: "http://127.0.0.1:9001", suspended: true}
`

func TestRoomsCheckSaysWhatBecomesOfARequest(t *testing.T) {
	back := inDir(t, map[string]string{"anteroom.yaml": roomsConfig})
	var b strings.Builder
	for _, args := range []string{
		"--url https://shop.example.com/assets/app.css",
		"--url https://shop.example.com/Assets/app.css",
		"--url https://shop.example.com/assets/..%2fpay",
		"--url https://shop.example.com/assets/app.css --method post",
		"--url http://pay.example.com/basket/1 --ip 192.0.2.7 --header CF-IPCountry:NL",
		"--url http://pay.example.com/",
		"--url http://any.example.org:8080/api/v1?x=1",
		"--url http://news.example.com",
		"--url http://news.example.com/_anteroom/v1",
		"--url https://shop.example.com/assets/app.css --json",
		"--url http://pay.example.com/ --json",
	} {
		stdout, stderr, code := execute(t, t.Context(), append([]string{"rooms", "check"}, strings.Fields(args)...)...)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
		if strings.Contains(args, "--json") && !json.Valid([]byte(stdout)) {
			t.Errorf("%s: %s", args, stdout)
		}
		fmt.Fprintf(&b, "$ anteroom rooms check %s\n%s\n", args, stdout)
	}
	back()
	golden(t, "rooms-check", b.String())
}

func TestRoomsCheckSaysWhatIsWrong(t *testing.T) {
	inDir(t, map[string]string{"bad.yaml": "rooms: [{name: shop, total_active_users: 2, bypass_rules: [{expression: 'http.hots eq \"a\"'}]}]\n"})
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"rooms chek", 2, "anteroom rooms: unknown command \"chek\"; did you mean \"check\"?\n"},
		{"rooms check shop", 2, "anteroom rooms check: unknown command \"shop\"; anteroom rooms check --help lists the commands\n"},
		{"rooms check", 2, "anteroom rooms check: --url \"\": give the whole address, such as https://shop.example.com/tickets\n"},
		{
			"rooms check --url /tickets --ip me --header x", 2, "anteroom rooms check: --url \"/tickets\": give the whole address, such as https://shop.example.com/tickets\n" +
				"anteroom rooms check: --ip \"me\": give an address such as 192.0.2.7\n" +
				"anteroom rooms check: --header \"x\": give a name and a value, such as 'Cookie: staff=yes'\n",
		},
		{"rooms check --url http://a/ --config a.yaml --admin http://b:9090", 2, "anteroom rooms check: --config and --admin are both given; give the file or the running node\n"},
		{"rooms check --url http://a/ --config anteroom.yaml", 1, "anteroom rooms check: anteroom.yaml: no such file or directory; docs/anteroom.yaml is a file to start from\n"},
		{
			"rooms check --url http://a/ --config bad.yaml", 1,
			"anteroom rooms check: bad.yaml:1: rooms[0].bypass_rules[0].expression: column 1: http.hots is no field; did you mean http.host?\n",
		},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields(c.args)...)
		if code != c.code || stdout != "" || stderr != c.want {
			t.Errorf("%s: exit code %d, output %q, errors\n%s, want\n%s", c.args, code, stdout, stderr, c.want)
		}
	}
}

// With --admin the node is asked, whatever lies here: it has what the cluster runs
// with, and others of its rules than the file.
func TestRoomsCheckAsksARunningNode(t *testing.T) {
	shop := shopOf(200)
	shop.BypassRules = []config.BypassRule{{Description: "assets", Expression: `starts_with(http.request.uri.path, "/assets/")`, Enabled: true}}
	at := newBoard(shop).port(t, "sesame-sesame-16")
	inDir(t, map[string]string{"anteroom.yaml": roomsConfig})
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--url https://shop.example.com/assets/a.css --token sesame-sesame-16", 0, "room shop, by its route shop.example.com/\nIt goes straight to http://127.0.0.1:9000: rule 1 is met.\n"},
		{"--url https://shop.example.com/ --ip 192.0.2.7 --token sesame-sesame-16", 0, "It needs a pass to go to http://127.0.0.1:9000, or waits for one.\n"},
		{"--url http://news.example.com/ --token sesame-sesame-16", 0, "No room has it"},
		{"--url http://shop.example.com/ --json --token sesame-sesame-16", 0, `"fate":"queue","prefix":"/_anteroom","room":"shop"`},
		{"--url /a --header x --token sesame-sesame-16", 2, "--url \"/a\": give the whole address"},
		{"--url http://shop.example.com/", 1, "asks for a token"},
	} {
		stdout, stderr, code := execute(t, t.Context(), append(strings.Fields("rooms check "+c.args), "--admin", at)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}
