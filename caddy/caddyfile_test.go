package caddy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/anteroom/anteroom/caddy"
)

// adapt makes JSON of a Caddyfile.
func adapt(t *testing.T, text string) (string, error) {
	t.Helper()
	b, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	return string(b), err
}

// provision has Caddy read a configuration, as caddy validate does.
func provision(t *testing.T, text string) error {
	t.Helper()
	b, err := adapt(t, text)
	if err != nil {
		return err
	}
	var c caddy.Config
	if err := json.Unmarshal([]byte(b), &c); err != nil {
		t.Fatal(err)
	}
	return caddy.Validate(&c)
}

const room = "rooms shop {\n routes * /\n total_active_users 5\n}\n"

func TestACaddyfileBecomesTheKeysOfTheFile(t *testing.T) {
	got, err := adapt(t, `{
	anteroom {
		node {
			id 12
			join 10.0.0.2:7946 10.0.0.3:7946
			expect 3
		}
		trusted_proxies 10.0.0.0/8
		rooms shop {
			routes shop.example.com /tea
			routes {
				path /coffee
			}
			total_active_users 200
			queue_all true
			message "In a moment."
			active_per_address 5
		}
		rooms news {
			routes news.example.com
		}
	}
}
shop.example.com {
	anteroom /tea/*
	respond hello
	rewrite * /index.html
}`)
	if err != nil {
		t.Fatal(err)
	}
	const app = `"anteroom":{"config":{"node":{"expect":3,"id":"12","join":["10.0.0.2:7946","10.0.0.3:7946"]},` +
		`"rooms":[{"active_per_address":5,"message":"In a moment.","name":"shop","queue_all":true,` +
		`"routes":[{"host":"shop.example.com","path":"/tea"},{"path":"/coffee"}],"total_active_users":200},` +
		`{"name":"news","routes":[{"host":"news.example.com"}]}],"trusted_proxies":["10.0.0.0/8"]}}`
	if !strings.Contains(got, app) {
		t.Errorf("%s\nhas no\n%s", got, app)
	}
	if at, rewrite := strings.Index(got, `"handler":"anteroom"`), strings.Index(got, `"handler":"rewrite"`); at < 0 || rewrite < at {
		t.Errorf("the room at %d, what changes the address at %d: %s", at, rewrite, got)
	}
}

func TestWhatIsWrongIsSaidWithWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "anteroom.yaml")
	if err := os.WriteFile(file, []byte("rooms:\n  - {name: shop, routes: [{host: \"*\", path: /}], total_active_users: 5}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ROOM_FOR", "7")
	const site = "\n:80 {\n anteroom\n respond hello\n}\n"
	for what, c := range map[string]struct{ text, want string }{
		"all is well":        {"{\nanteroom {\n" + room + "}\n}" + site, ""},
		"a file":             {"{\nanteroom {\nconfig " + file + "\n}\n}" + site, ""},
		"a placeholder":      {"{\nanteroom {\n" + strings.Replace(room, "shop {", "shop {\n message \"Room for {env.ROOM_FOR}\"", 1) + "}\n}" + site, ""},
		"no configuration":   {site, "give anteroom { config FILE }"},
		"both":               {"{\nanteroom {\nconfig " + file + "\n" + room + "}\n}" + site, "move them into one place"},
		"a file that is not": {"{\nanteroom {\nconfig " + file + "x\n}\n}" + site, "docs/anteroom.yaml is a file to start from"},
		"an unknown key":     {"{\nanteroom {\nroom shop\n}\n}" + site, `"room" is no key here; there are node, cluster, security,`},
		"no limit":           {"{\nanteroom {\n" + strings.Replace(room, "total_active_users 5", "", 1) + "}\n}" + site, "total_active_users: missing"},
		"a wrong value":      {"{\nanteroom {\n" + strings.Replace(room, "users 5", "users five", 1) + "}\n}" + site, "rooms[0].total_active_users"},
		"adaptive":           {"{\nanteroom {\n" + strings.Replace(room, "shop {", "shop {\n origin http://127.0.0.1:9000\n outflow adaptive", 1) + "}\n}" + site, "rooms[0].outflow: adaptive goes by"},
		"too many values":    {"{\nanteroom {\n" + strings.Replace(room, "users 5", "users 5 6", 1) + "}\n}" + site, "want a value"},
		"twice":              {"{\nanteroom {\n" + strings.Replace(room, "users 5", "users 5\ntotal_active_users 6", 1) + "}\n}" + site, "total_active_users is there twice"},
		"options in a site":  {"{\nanteroom {\n" + room + "}\n}\n:80 {\n anteroom shop\n respond hello\n}\n", "no options"},
	} {
		t.Run(what, func(t *testing.T) {
			switch err := provision(t, c.text); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}
