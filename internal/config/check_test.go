package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/tokens"
)

// gossipKey is the base64 of 32 bytes.
const gossipKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// makeKey is what a cluster without a key is told.
const makeKey = "make a key with: anteroom keys cluster --out cluster.key, and give it to all nodes as security.gossip_key_file"

// aRoom is a room that lacks nothing, at the end of a file.
const aRoom = "\nrooms: [{name: shop, total_active_users: 200}]\n"

// What is said of an admin port that other machines reach, and a token that counts there.
var (
	noToken     = "no security.admin_token (or ANTEROOM_SECURITY_ADMIN_TOKEN)"
	noTLS       = "no security.tls.admin (a certificate and its key; or admin_plaintext: true, where the network between is yours alone)"
	setOrListen = "; set what is missing, or listen on 127.0.0.1:9090"
	viewer      = "tokens: [{name: lou, hash: 'sha256:" + strings.Repeat("0", 64) + "', may: [view], rooms: ['*']}]"
)

func TestErrorsSayWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"node: {id: ''}", "1: node.id: \"\" is no name; give up to 128 letters, digits, dots, - and _, another one on each node"},
		{"node: {gateway: 80}", "1: node.gateway: is a number; put it in quotes if it is meant as text"},
		{"node: {gateway: '80'}", "1: node.gateway: \"80\" is not host:port; give one such as 0.0.0.0:8080"},
		{"node: {gateway: ':http'}", "1: node.gateway: \":http\" has no port; give one from 1 to 65535, or 0 for any free one"},
		{"node: {gateway: '::1:80'}", "1: node.gateway: \"::1:80\" is not host:port; give one such as [2001:db8::2]:7946, with brackets"},
		{"node: {gateway: 'a b:80'}", "1: node.gateway: \"a b:80\" has no host that can be listened on; give an address of this machine, or 0.0.0.0 for all"},
		{"node:\n  gateway: 10.0.0.1:9000\n  peer: :9000", "3: node.peer: :9000 is taken by node.gateway; give another port"},
		{"node: {gateway: ':0', admin: '[::1]:0', peer: 'localhost:0'}", ""},
		{"node: {grpc: none}", ""},
		{"node: {grpc: '7002'}", "1: node.grpc: \"7002\" is not host:port; give one such as 0.0.0.0:8080"},
		{"node: {grpc: '127.0.0.1:8080'}", "1: node.grpc: 127.0.0.1:8080 is taken by node.gateway; give another port"},
		{"node: {advertise: 0.0.0.0}", "1: node.advertise: \"0.0.0.0\" is no address that others can reach; give a host, or host:port where ports are mapped"},
		{"node: {join: 127.0.0.1:7946}", "1: node.join: is text; give a list: [a, b], or a line with - for each"},
		{"node: {join: [':7946']}", "1: node.join[0]: \":7946\" has no host to connect to; give the name or address of a node"},
		{"node: {join: ['localhost:0']}", "1: node.join[0]: \"localhost:0\" has no port; give that of the node's gossip, such as 7946"},
		{"node: {expect: -1}", "1: node.expect: -1; give the number of nodes that start a new cluster together, up to 1000, or 0"},
		{"node: {expect: 1.5}", "1: node.expect: is a number; give a whole number without quotes, such as 200"},
		{"cluster: {period: 0}", "1: cluster.period: 0s; give a time above 0 and up to 8760h, such as 20s or 5m"},
		{"cluster: {period: 200}", "1: cluster.period: no time; give one with its unit, such as 500ms, 20s, 5m or 1h"},
		{"cluster: {period: -1s}", "1: cluster.period: -1s; give a time above 0 and up to 8760h, such as 20s or 5m"},
		{"cluster: {lease: 3s}", "1: cluster.lease: 3s is shorter than two detections; make it at least 2 × exclude_after = 4s"},
		{"cluster:\n  exclude_after: 2s\n  period: 1500ms\n  lease: 20s", "2: cluster.exclude_after: 2s is shorter than two periods; make it at least 3s"},
		{"security: {gossip_key: secret words}", "1: security.gossip_key: not base64; make one with: anteroom keys cluster --out cluster.key"},
		{"security: {gossip_key: AAAA}", "1: security.gossip_key: base64 of 3 bytes, where 16, 24 or 32 are needed; make one with: anteroom keys cluster --out cluster.key"},
		{"security: {gossip_key: [" + gossipKey + ", AAAA]}", "1: security.gossip_key[1]: base64 of 3 bytes, where 16, 24 or 32 are needed; make one with: anteroom keys cluster --out cluster.key"},
		{"security: {gossip_key: [" + gossipKey + ", " + gossipKey + "]}", "1: security.gossip_key: a key that is there twice; give each once"},
		{"security:\n  gossip_key: " + gossipKey + "\n  gossip_key_file: cluster.key", "3: security.gossip_key_file: given beside security.gossip_key; give one of them"},
		{"node: {admin: ':9090'}", "1: node.admin: :9090 can be reached from other machines, and there is " + noToken + " and " + noTLS + setOrListen},
		{"node: {admin: ':9090'}\nsecurity: {admin_plaintext: true}", "1: node.admin: :9090 can be reached from other machines, and there is " + noToken + setOrListen},
		{"node: {admin: ':9090'}\nsecurity: {" + viewer + "}", "1: node.admin: :9090 can be reached from other machines, and there is " + noTLS + setOrListen},
		{"node: {admin: ':9090'}\nsecurity: {tls: {admin: {cert: c, key: k}}, " + viewer + "}", ""},
		{"node: {admin: ':9090'}\nsecurity: {admin_plaintext: true, " + viewer + "}", ""},
		{
			"node: {admin: ':9090'}\nsecurity: {admin_plaintext: true, " + strings.Replace(viewer, "'*'", "shop", 1) + "}",
			"1: node.admin: :9090 can be reached from other machines, and there is " + noToken + setOrListen,
		},
		{"security: {tls: {admin: {cert: c}}}", "1: security.tls.admin: key missing; give all of its files, or none"},
		{"node: {admin: 'localhost:9090', gateway: '[::1]:80'}", ""},
		{"node: {join: [node-2:7946, node-3:7946]}", "1: node.join: nodes know each other by a key, and there is none; " + makeKey},
		{"node: {join: [127.0.0.1:7946], expect: 3}", "1: node.join: nodes know each other by a key, and there is none; " + makeKey},
		{"node: {expect: 3}", "1: node.expect: 3 nodes know each other by a key, and there is none; " + makeKey},
		{"node: {expect: 1}", ""},
		{"security: {tls: {peer: {ca: a, cert: b, key: c}}}", "1: security.tls.peer: certificates do not guard gossip, and there is no key for it; " + makeKey},
		{"node: {join: [127.0.0.1:7946], expect: 3}\nsecurity: {gossip_key_file: cluster.key}", ""},
		{"node: {join: [node-2:7946]}\nsecurity: {gossip_key: " + gossipKey + "}", ""},
		{"security:\n  tls:\n    gateway: {key: k}\n    peer: {ca: c}", "3: security.tls.gateway: cert missing; give all of its files, or none\n" +
			"4: security.tls.peer: cert and key missing; give all of its files, or none"},
		{"prefix: /", "1: prefix: \"/\" is no path for our own pages; give one such as /_anteroom, without a / at its end"},
		{"prefix: /a/../b", "1: prefix: \"/a/../b\" is no path for our own pages; give one such as /_anteroom, without a / at its end"},
		{"country_header: 'a b'", "1: country_header: \"a b\" is no name of a header; give one that your proxy sets, such as CF-IPCountry"},
		{"trusted_proxies: ['fd00::/8', 10.0.0.1, 1.2.3.4/33]", "1: trusted_proxies[2]: \"1.2.3.4/33\" is no address; give one such as 10.0.0.5, or a range such as 10.0.0.0/8"},
	} {
		var got []string
		for _, p := range problems(parse(c.text+aRoom, config.Options{}).Errors) {
			got = append(got, strings.TrimPrefix(p, "a.yaml:"))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestErrorsInRoomsSayWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ room, want string }{
		{"", ""},
		{"name: a b", "name: \"a b\" cannot stand in an address; give up to 64 letters, digits, - and _"},
		{"name:", "name: missing; give the room a name, such as shop"},
		{"total_active_users:", "total_active_users: missing; give how many people may be on the site at a time, about 75 % of what it can bear"},
		{"total_active_users:, queueing_method: reject", ""},
		{"total_active_users: 2000000000", "total_active_users: 2000000000; give 0 to 1000000000"},
		{"total_active_users: 0x10", ""},
		{"total_active_users: many", "total_active_users: not a whole number; give one such as 200"},
		{"new_users_per_minute: -1", "new_users_per_minute: -1; give 1 to 1000000000, or 0 for no limit"},
		{"queueing_status_code: 302", "queueing_status_code: 302; give 200, 202, 429 or 503"},
		{"queueing_method: lifo", "queueing_method: \"lifo\"; give fifo, random, passthrough or reject"},
		{"queueing_method: random, algorithm: qpid", "queueing_method: random needs algorithm cut"},
		{"on_partition: [majority]", "on_partition: is a list; give text"},
		{"joins_per_address: -1", "joins_per_address: -1; give 0 for no bound, or a number up to 1000000000"},
		{"places_per_address: -1", "places_per_address: -1; give 0 for no bound, or a number up to 1000000000"},
		{"streams_per_address: 2000000000", "streams_per_address: 2000000000; give 0 for no bound, or a number up to 1000000000"},
		{"active_per_address: some", `active_per_address: "some"; give auto, 0 for no bound, or a number up to 1000000000`},
		{"session_max: -1s", "session_max: -1s; give 0 for no bound, or a time up to 8760h such as 1h"},
		{"session_max: 4m", "session_max: 4m0s is shorter than session_duration 5m0s; give at least as much, or 0 for no bound"},
		{"outflow: some", `outflow: "some"; give fixed, or adaptive: the number of people on the site follows what the origin bears, up to total_active_users`},
		{"outflow: adaptive", "outflow: adaptive goes by the answers that pass through the proxy, and the room has no origin; give one, or give fixed"},
		{"outflow: adaptive, origin: http://127.0.0.1:9000, routes: [{path: /}], governor: {floor: 10, latency: 0s, error_percent: 50, load_header: X-Load}", ""},
		{"governor: {floor: -1}", "governor.floor: -1; give the number of people for whom it is never too much, or 0 for a tenth of total_active_users"},
		{"governor: {latency: 2m}", "governor.latency: 2m; give a time from 1ms to 1m, or 0s if it does not matter how long answers take"},
		{"governor: {error_percent: 0}", "governor.error_percent: 0; give how many of 100 answers may fail, 1 to 50"},
		{"governor: {load_header: a b}", `governor.load_header: "a b" is no name of a header; give one such as X-Load`},
		{"queue_max: 0", "queue_max: 0; give how many people may wait at one node, 1 or more"},
		{"queue_max: -1", "queue_max: -1; give how many people may wait at one node, 1 or more"},
		{"queue_all: 'true'", "queue_all: is text; give true or false, without quotes"},
		{"session_duration: -5m", "session_duration: -5m; give a time above 0 and up to 8760h, such as 20s or 5m"},
		{"ticket_ttl: 10s", "ticket_ttl: 10s is shorter than refresh_interval 20s; people would lose their place while they wait as told"},
		{"survivor_after: -1s", "survivor_after: negative; give auto, 0 for never, or a time such as 10m"},
		{"survivor_after: 90000h", "survivor_after: 90000h; give auto, 0 for never, or a time up to 8760h"},
		{"cookie_suffix: a=b", "cookie_suffix: \"a=b\" cannot stand in the name of a cookie; give up to 64 letters, digits, - and _"},
		{"default_template_language: dutch!", "default_template_language: \"dutch!\" is no language tag; give one such as en, nl or pt-BR"},
		{"default_template_language: xx", "default_template_language: the waiting page has no words in \"xx\"; give en, ar, cs, da, de, es, fi, fr, he, it, ja, ko, nb, nl, pl, pt-BR, sv, tr, uk, zh-CN or zh-TW"},
		{"default_template_language: pt-PT", ""},
		{"message: '" + strings.Repeat("x", 1001) + "'", "message: 1001 bytes; give at most 1000, it stands on every waiting page"},
		{"title: '" + strings.Repeat("x", 101) + "'", "title: 101 bytes; give at most 100, it stands on every waiting page"},
		{"description: '" + strings.Repeat("x", 2001) + "'", "description: 2001 bytes; give at most 2000, it stands on every waiting page"},
		{"description: 'See [prices](/prices)'", `description: the link "/prices" leads nowhere; give a whole address such as https://example.com/prices, or mailto:help@example.com`},
		{"accent: teal", `accent: "teal" is no color; give one such as #0b6b66`},
		{"title: Leaf & Kettle, accent: '#FA0', description: 'See [prices](https://example.com/p)', confirm_entry: true", ""},
		{"default_template_language: pt-BR, message: 'Doors open at 9'", ""},
		{"origin: 'ftp://x', routes: [{}]", "origin: \"ftp://x\" is no address of a site; give one such as http://127.0.0.1:9000"},
		{"origin: 'http://u:p@x', routes: [{}]", "origin: has a user name in it, which is not passed on; leave it out"},
		{"origin: \"http://u:p\\x7f@x\", routes: [{}]", "origin: no address of a site; give one such as http://127.0.0.1:9000"},
		{"origin: 'http://x?y', routes: [{}]", "origin: \"http://x?y\" has a ? or # part; leave it out"},
		{"origin: 'https://x/base', routes: [{}]", ""},
		{"origin: 'http://x'", "routes: missing, so nobody gets to the origin; give one such as [{host: shop.example.com, path: /}], or host \"*\" for all"},
		{"routes: [{host: 'x:80'}]", "routes[0].host: \"x:80\" is no host name; give one such as shop.example.com without scheme or port, or \"*\" for any"},
		{"routes: [{path: tickets}]", "routes[0].path: \"tickets\" is no path; give one such as /tickets, or / for the whole site, without *, ? or #"},
		{"routes: [{path: /a/../b}]", "routes[0].path: \"/a/../b\" never comes in this form; write /b"},
		{"routes: [{path: /_anteroom/v1}]", "routes[0].path: \"/_anteroom/v1\" is below prefix /_anteroom, which is for our own pages; give another path, or another prefix"},
		{`bypass_rules: [{expression: 'http.host eq "A"'}, {expression: ssl}]`, `bypass_rules[0].expression: column 14: http.host is in lower case; write a`},
		{"bypass_rules: [{description: x}, {action: block, expression: ssl}]", "bypass_rules[0].expression: missing; say who need not wait, such as starts_with(http.request.uri.path, \"/assets/\")\n" +
			"bypass_rules[1].action: \"block\"; give bypass_waiting_room, the only one, or leave it out"},
		{
			"name: shop, bypass_rules: [{expression: 'ip.src in $office'}], ip_lists: [{name: office, items: [10.0.0.1, 10.0.0.1/8]}]",
			"ip_lists[0].items[1]: 10.0.0.1/8 has bits beyond its length; write 10.0.0.0/8, or 10.0.0.1 for that address alone",
		},
		{"bypass_rules: [{expression: 'ip.src in $office', enabled: false}]", "bypass_rules[0].expression: column 11: there is no list office; put it under ip_lists of the room"},
		{
			"name: shop, ip_lists: [{name: Office, items: ['::1']}, {name: a}, {name: b, items: ['::1']}, {name: b, items: ['::2']}]",
			"ip_lists[0].name: \"Office\"; give a name of up to 50 small letters, digits and _, which rules write with a $ before it\n" +
				"ip_lists[1].items: none; give addresses or ranges, such as [192.0.2.0/24]\n" +
				"ip_lists[3].name: \"b\" is the name of another list too; give each its own",
		},
		{"search_engine_crawler_bypass: true", "search_engine_crawler_bypass: needs the addresses of the search engines, since anybody can call themselves Googlebot; " +
			"give them in ip_lists as search_engines, or false"},
		{"name: shop, search_engine_crawler_bypass: true, ip_lists: [{name: search_engines, items: [66.249.64.0/19]}]", ""},
		{"bypass_rules: [" + strings.Repeat("{expression: ssl},", 51) + "]", "bypass_rules: 51 rules; give at most 50, for each is asked on every request. Several can be one, with or"},
		{"routes: [{path: /a/}, {path: /a}]", "routes[1]: */a is rooms[0].routes[0] too; give each route to one room"},
		{"routes: [{host: A.example., path: /}, {host: a.example}]", "routes[1]: a.example/ is rooms[0].routes[0] too; give each route to one room"},
		{"routes: [{host: a.example}, {host: '*'}, {path: /b}, {path: /bc}]", ""},
	} {
		text := "rooms:\n  - {" + merged(c.room) + "}\n"
		var got []string
		for _, p := range problems(parse(text, config.Options{}).Errors) {
			got = append(got, strings.TrimPrefix(p, "a.yaml:2: rooms[0]."))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.room, diff)
		}
	}
}

// merged is a room that lacks nothing but what keys say otherwise.
func merged(keys string) string {
	for _, base := range []string{"name: shop", "total_active_users: 200"} {
		if name, _, _ := strings.Cut(base, ":"); !strings.Contains(keys, name+":") {
			keys = base + ", " + keys
		}
	}
	return keys
}

func TestWarningsAreNoErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"node: {data: d}" + aRoom, ""},
		{"prefix: /a" + aRoom, "a.yaml: security.signing_keys: not set, and neither is node.data: when all nodes stop, everyone loses their place; " +
			"make keys with: anteroom keys new, or set node.data"},
		{"node: {data: d}", "a.yaml: rooms: none: this node serves only rooms that the others tell it of; list the rooms of the cluster"},
		{"node: {data: d, expect: 3}\nsecurity: {gossip_key: " + gossipKey + "}" + aRoom, "a.yaml:1: node.expect: 3, and no node.join: this node cannot look for the others; list some of them in node.join"},
		{"node: {data: d, expect: 1, join: [127.0.0.1:1]}\nsecurity: {gossip_key: " + gossipKey + "}" + aRoom, "a.yaml:1: node.expect: 1: this node starts a cluster of its own before it has met those in " +
			"node.join; give the number of nodes that start together, or 0 to wait for a cluster"},
		{"node: {data: d, gossip: 127.0.0.1:1, join: [127.0.0.1:1]}\nsecurity: {gossip_key: " + gossipKey + "}" + aRoom, "a.yaml:1: node.join: lists this node only; list another one, so that it finds its cluster after a restart"},
		{"node: {data: d}\nsecurity: {gossip_key: " + gossipKey + "}" + aRoom, "a.yaml:1: node.join: empty: this node starts a cluster of one whenever it starts; " +
			"if others list it in their node.join, list some of them here"},
		{"node:\n  data: d\n  peer: ':7001'\n  gossip: 0.0.0.0:7946" + aRoom, "a.yaml:3: node.peer: :7001 is not opened: without security.gossip_key_file this node is a " +
			"cluster of one; leave it out, or " + makeKey + "\n" +
			"a.yaml:4: node.gossip: 0.0.0.0:7946 is not opened: without security.gossip_key_file this node is a cluster of one; leave it out, or " + makeKey},
		{"node: {data: d}\nsecurity: {admin_token: short}" + aRoom, "a.yaml:2: security.admin_token: shorter than 16 characters, so it can be guessed; make one with: openssl rand -hex 32"},
		{"node: {data: d}\ntrusted_proxies: ['::/0']" + aRoom, "a.yaml:2: trusted_proxies[0]: ::/0 is everyone: any visitor can then claim any address; list your proxies only"},
		{"node: {data: d}\nrooms: [{name: a, total_active_users: 0}]", "a.yaml:2: rooms[0].total_active_users: 0 lets nobody in: everyone waits until it is raised"},
	} {
		f := parse(c.text, config.Options{})
		if err := f.Err(); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, strings.Join(problems(f.Warnings), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestRoomsDoNotGetInEachOthersWay(t *testing.T) {
	f := parse(`
rooms:
  - {name: a, total_active_users: 1, routes: [{path: /x}]}
  - {name: a, total_active_users: 1}
  - {name: b, total_active_users: 1, cookie_suffix: a, routes: [{path: /x/}, {path: /x/y}]}
`, config.Options{})
	want := []string{
		`a.yaml:4: rooms[1].name: "a" is the name of rooms[0] too; give each room its own`,
		`a.yaml:5: rooms[2].cookie_suffix: "a" is that of rooms[1] too, so their cookies would replace each other; give each room its own`,
		`a.yaml:5: rooms[2].routes[0]: */x/ is rooms[0].routes[0] too; give each route to one room`,
	}
	if diff := cmp.Diff(want, problems(f.Errors)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesOfOneClusterAreComparedWithEachOther(t *testing.T) {
	one := config.Parse("1.yaml", []byte(`
node: {id: a, join: [127.0.0.1:2], expect: 3}
cluster: {max_skew: 500ms, period: 100ms} # that of the others is 200ms, and may be
security: {gossip_key: `+gossipKey+`}
rooms: [{name: shop, total_active_users: 5}, {name: desk, total_active_users: 5}]
`), config.Options{})
	two := config.Parse("2.yaml", []byte(`
node:
  id: a
  expect: 2
cluster:
  lease: 20s
prefix: /wait
rooms:
  - name: shop
    total_active_users: 6
  - name: door
    total_active_users: 1
security: {gossip_key: `+otherKey+`}
`), config.Options{})
	adopts := config.Parse("0.yaml", []byte(`
node: {id: c, join: [127.0.0.1:2], expect: 3}
security: {gossip_key: `+gossipKey+`}
rooms: [{name: shop, total_active_users: 5}, {name: desk, total_active_users: 5}]
`), config.Options{})
	config.Together([]*config.File{one, two, adopts})
	if err := one.Err(); err != nil {
		t.Errorf("1.yaml: %v", err)
	}
	if err := adopts.Err(); err != nil {
		t.Errorf("0.yaml, which takes over the others' settings: %v", err)
	}
	errors := []string{
		`2.yaml:3: node.id: "a" is that of 1.yaml too; give each node its own`,
		`2.yaml:4: node.expect: not as in 1.yaml; give the same on all nodes`,
		`2.yaml:6: cluster.lease: not as in 1.yaml; give the same on all nodes`,
		`2.yaml:13: security.gossip_key: not as in 1.yaml; give the same on all nodes`,
	}
	if diff := cmp.Diff(errors, problems(two.Errors)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	warnings := []string{
		`2.yaml:2: node.join: empty: this node starts a cluster of one whenever it starts, and the others find it only later; list some of them`,
		`2.yaml:7: prefix: not as in 1.yaml; visitors may come to either node`,
		`2.yaml:8: rooms: the room "desk" of 1.yaml is not here; list the same rooms on all nodes`,
		`2.yaml:10: rooms[0].total_active_users: not as in 1.yaml; give the same on all nodes`,
		`2.yaml:11: rooms[1]: 1.yaml does not have the room "door"; list the same rooms on all nodes`,
	}
	if diff := cmp.Diff(warnings, problems(two.Warnings, "security.signing_keys", "node.expect")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A node takes over the cluster's settings if it was told of a cluster and of
// none of them, in whatever way.
func TestAdoptsCluster(t *testing.T) {
	join := config.Setting{Key: "node.join", Value: "127.0.0.1:2", From: "--join"}
	for _, test := range []struct {
		text string
		o    config.Options
		want bool
	}{
		{"node: {join: [127.0.0.1:2]}", config.Options{}, true},
		{"", config.Options{Set: []config.Setting{join}}, true},
		{"cluster:\n", config.Options{Set: []config.Setting{join}}, true},
		{"cluster: {}", config.Options{Set: []config.Setting{join}}, true},
		{"cluster: {lease: }", config.Options{Set: []config.Setting{join}}, true},
		{"", config.Options{}, false},
		{"node: {expect: 3}", config.Options{}, false},
		{"cluster: {lease: 10s}", config.Options{Set: []config.Setting{join}}, false},
		{"cluster: {lease: bad}", config.Options{Set: []config.Setting{join}}, false},
		{"", config.Options{Set: []config.Setting{join}, Environ: []string{"ANTEROOM_CLUSTER_MAX_SKEW=1s"}}, false},
		{"", config.Options{Set: []config.Setting{join}, Environ: []string{"ANTEROOM_CLUSTER_MAX_SKEW="}}, true},
	} {
		if got := config.Parse("a.yaml", []byte(test.text), test.o).AdoptsCluster(); got != test.want {
			t.Errorf("%q with %v: %v, want %v", test.text, test.o, got, test.want)
		}
	}
}

// A file from before node.grpc runs as it did, whatever it does with 7002.
func TestTheDefaultPortForProgramsGivesWay(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "127.0.0.1:7002",
		"node: {peer: ':7002'}":   config.None,
		"node: {gossip: ':7002'}": config.None,
		"node: {join: [127.0.0.1:7001, 127.0.0.1:7002]}\nsecurity: {gossip_key: " + gossipKey + "}":                  config.None,
		"node: {join: [10.0.0.1:7002]}\nsecurity: {gossip_key: " + gossipKey + "}":                                   "127.0.0.1:7002",
		"node: {grpc: '127.0.0.1:7002', join: [127.0.0.1:7002], data: d}\nsecurity: {gossip_key: " + gossipKey + "}": "127.0.0.1:7002",
	} {
		f := parse(text+aRoom, config.Options{})
		warned := slices.ContainsFunc(f.Warnings, func(p config.Problem) bool { return p.Key == "node.grpc" })
		if f.Err() != nil || f.Config.Node.GRPC != want || warned != (want == config.None) || f.DefaultGRPC() == strings.Contains(text, "grpc:") {
			t.Errorf("%s: node.grpc %s, default %t, warned %t, error %v; want %s", text, f.Config.Node.GRPC, f.DefaultGRPC(), warned, f.Err(), want)
		}
	}
}

// aHash is that of some token.
var aHash = "sha256:" + strings.Repeat("0a", 32)

func TestErrorsInTokensSayWhatWouldBeRight(t *testing.T) {
	secret := tokens.New()
	for token, want := range map[string]string{
		"name: worker, hash: " + aHash + ", may: [take, put], queues: [jobs, team/*, team*, '*'], rooms: [shop, shop-*]": "",
		"hash: " + aHash + ", may: [take], queues: [jobs]":                                                               "name: \"\" is no name; give up to 128 letters, digits, dots, - and _, which logs call the token by",
		"name: worker, may: [take], queues: [jobs]":                                                                      "hash: is no hash of a token, which is sha256: and 64 hexadecimal digits; make one with: anteroom keys token",
		"name: worker, hash: " + secret + ", may: [take], queues: [jobs]":                                                "hash: is the token itself, which only its bearer may have: make another one, and give the hash that is printed with it; make one with: anteroom keys token",
		"name: worker, hash: " + aHash + ", queues: [jobs]":                                                              "may: empty; give some of put, take, manage, authorize, view, operate",
		"name: worker, hash: " + aHash + ", may: [all], queues: [jobs]":                                                  "may[0]: \"all\"; give some of put, take, manage, authorize, view, operate",
		"name: worker, hash: " + aHash + ", may: [take]":                                                                 ": names nothing that it is for; give rooms or queues, such as queues: [jobs, team/*], or all: queues: [\"*\"]",
		"name: worker, hash: " + aHash + ", may: [put], queues: ['jobs**']":                                              "queues[0]: \"jobs**\" is no name; give one, or the beginning of some and *, such as shop-*, or * alone for all",
		"name: worker, hash: " + aHash + ", may: [put], rooms: ['*shop']":                                                "rooms[0]: \"*shop\" is no name; give one, or the beginning of some and *, such as shop-*, or * alone for all",
		"name: worker, hash: " + aHash + ", may: [put], rooms: [''], extra: 1":                                           "extra: unknown key; there are name, hash, may, rooms, queues\na.yaml:1: security.tokens[0].rooms[0]: \"\" is no name; give one, or the beginning of some and *, such as shop-*, or * alone for all",
	} {
		f := parse("security: {tokens: [{"+token+"}]}"+aRoom, config.Options{})
		got := strings.TrimPrefix(strings.TrimPrefix(strings.Join(problems(f.Errors), "\n"), "a.yaml:1: security.tokens[0]"), ".")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", token, diff)
		}
		if strings.Contains(got, secret) {
			t.Errorf("the token is in %s", got)
		}
	}
	twice := "security:\n  tokens:\n    - {name: a, hash: " + aHash + ", may: [put], queues: [a]}\n    - {name: a, hash: " + aHash + ", may: [put], queues: [b]}\n"
	if got := problems(parse(twice+aRoom, config.Options{}).Errors); len(got) != 2 {
		t.Errorf("the same twice: %v", got)
	}
}

// Other machines may call a node only where they prove who they are, and not in
// clear.
func TestPortForProgramsOffLoopbackNeedsTLSAndTokens(t *testing.T) {
	const tls, some = "tls: {grpc: {cert: c.pem, key: k.pem}}", "tokens: [{name: a, hash: 'sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a', may: [put], queues: [a]}]"
	refused := func(missing string) string {
		return "a.yaml:1: node.grpc: 0.0.0.0:7002 can be reached from other machines, and there is no " + missing + "; set what is missing, or listen on 127.0.0.1:7002"
	}
	for security, want := range map[string]string{
		"":                refused("security.tls.grpc (a certificate and its key) and no security.tokens (make one with: anteroom keys token)"),
		tls:               refused("security.tokens (make one with: anteroom keys token)"),
		some:              refused("security.tls.grpc (a certificate and its key)"),
		tls + ", " + some: "",
	} {
		for at, loopback := range map[string]bool{"0.0.0.0:7002": false, "127.0.0.1:7002": true, "none": true} {
			f := parse("node: {grpc: '"+at+"'}\nsecurity: {"+security+"}"+aRoom, config.Options{})
			got := strings.Join(problems(f.Errors), "\n")
			if loopback && got != "" || !loopback && got != want {
				t.Errorf("%s with {%s}: %s\nwant %s", at, security, got, want)
			}
		}
	}
}

func TestAGatewayThatOnlyAProxyReachesIsTold(t *testing.T) {
	const want = "trusted_proxies: empty, and node.gateway is 10.0.0.7:8080"
	for text, warns := range map[string]bool{
		"node: {gateway: 10.0.0.7:8080}":                                 true,
		"node: {gateway: 10.0.0.7:8080}\ntrusted_proxies: [10.0.0.1]":    false,
		"node: {gateway: 0.0.0.0:8080}":                                  false,
		"node: {gateway: 198.51.100.7:8080}\nrooms: []\nprefix: /_other": false,
	} {
		f := parse(text, config.Options{})
		got := false
		for _, w := range f.Warnings {
			got = got || strings.HasPrefix(w.Key+": "+w.Text, want)
		}
		if got != warns {
			t.Errorf("%q: warnings %v", text, f.Warnings)
		}
	}
}
