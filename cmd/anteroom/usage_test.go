package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDemoAndServeSayWhatIsWrongBeforeTheyStart(t *testing.T) {
	inDir(t, map[string]string{"bad.yaml": "node: {id: a, gatewy: 1}\nrooms: [{name: shop, total_active_users: -1}]\n"})
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"demo now", 2, []string{`anteroom demo: unknown command "now"; anteroom demo --help lists the commands`}},
		{"demo --nodes 0", 2, []string{"anteroom demo: --nodes 0; give a number from 1 to 64"}},
		{"demo --visitors -1", 2, []string{"anteroom demo: --visitors -1; give a number from 0 to 100000"}},
		{"demo --port 65535", 2, []string{"anteroom demo: --port 65535; give a number from 1 to 65532"}},
		{"demo --admin-port 0", 2, []string{"anteroom demo: --admin-port 0; give a number from 1 to 65532"}},
		{"demo --port 8080 --admin-port 8081", 2, []string{"anteroom demo: --port 8080 and --admin-port 8081 overlap; 3 nodes take 3 ports from each"}},
		{"demo --session 10ms", 2, []string{"anteroom demo: --stay and --over cannot be negative, and --session is at least 1s"}},
		{"demo --exit", 2, []string{"anteroom demo: --exit without --visitors would end at once; give --visitors"}},
		{"demo --limit many", 2, []string{`anteroom demo: invalid argument "many" for "--limit" flag: strconv.ParseInt: parsing "many": invalid syntax; anteroom demo --help lists the flags`}},
		{"serve", 2, []string{"anteroom serve: --config is missing; name the configuration file, such as docs/anteroom.yaml, or --join a cluster that has one"}},
		{"serve --watch --join 127.0.0.1:7946", 2, []string{"anteroom serve: --watch needs a file; name it by --config"}},
		{"serve anteroom.yaml", 2, []string{`anteroom serve: unknown command "anteroom.yaml"; anteroom serve --help lists the commands`}},
		{"serve --config none.yaml", 1, []string{"anteroom serve: none.yaml: no such file or directory; docs/anteroom.yaml is a file to start from"}},
		{"serve --config bad.yaml", 1, []string{"anteroom serve: bad.yaml:1: node.gatewy: ", "anteroom serve: bad.yaml:2: rooms[0].total_active_users: "}},
	} {
		stdout, stderr, code := execute(t, t.Context(), strings.Fields(c.args)...)
		if code != c.code || stdout != "" {
			t.Errorf("%s: exit code %d, want %d; output %q, want none", c.args, code, c.code, stdout)
		}
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		for i, want := range c.want {
			if i < len(lines) && strings.HasSuffix(want, ": ") {
				lines[i] = lines[i][:min(len(want), len(lines[i]))] // what would be right is for the configuration's own tests
			}
		}
		if diff := cmp.Diff(c.want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
}
