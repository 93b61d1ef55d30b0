package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
	"github.com/anteroom/anteroom/internal/term"
)

// roomsCheck is the request that `rooms check` is about.
type roomsCheck struct {
	client adminClient
	file   string
	asked  admin.Check
	asJSON bool
}

// fileHere is the configuration that is read if none is named.
const fileHere = "anteroom.yaml"

func (p *program) roomsCheckCommand() *cobra.Command {
	c := roomsCheck{client: adminClient{url: adminDefault}}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell which room and which bypass rule a request meets",
		Long: `Tell what would become of a request: which room it is for, by which route, and what
each bypass rule says of it. --admin asks a running node, which has the rooms as
the cluster runs them; --config reads a file. Without either it is anteroom.yaml in
this directory, or the node on this machine if there is no such file. Nothing is
sent to the site. What is not given is not known, and a rule that asks for it is
not met. The country is the header that country_header names.`,
		Example: `  anteroom rooms check --url https://shop.example.com/assets/app.css
  anteroom rooms check --url https://shop.example.com/ --admin http://10.0.0.1:9090
  anteroom rooms check --url https://shop.example.com/ --ip 192.0.2.7 --header 'User-Agent: Googlebot/2.1'`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			running, file := cmd.Flag("admin").Changed, cmd.Flag("config").Changed
			if running && file {
				return wrongUsage(errors.New("--config and --admin are both given; give the file or the running node"))
			}
			if _, err := os.Stat(fileHere); !running && !file && errors.Is(err, os.ErrNotExist) {
				running = true
			}
			return unlessStopped(cmd.Context(), p.roomsCheck(cmd.Context(), c, running))
		},
	}
	cmd.Flags().StringVar(&c.file, "config", fileHere, "the configuration `FILE`")
	cmd.Flags().StringVar(&c.asked.URL, "url", "", "the `URL` as the browser has it")
	cmd.Flags().StringVar(&c.asked.Method, "method", http.MethodGet, "the request's `METHOD`")
	cmd.Flags().StringVar(&c.asked.IP, "ip", "", "the visitor's `ADDRESS`, as trusted_proxies tell it")
	cmd.Flags().StringArrayVar(&c.asked.Headers, "header", nil, "a header of the request, such as 'Cookie: staff=yes'; may be repeated")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print one JSON object")
	c.client.add(cmd)
	return cmd
}

func (p *program) roomsCheck(ctx context.Context, c roomsCheck, running bool) error {
	q, wrong := c.asked.Probe()
	if len(wrong) > 0 {
		errs := make([]error, len(wrong))
		for i, w := range wrong {
			flag, _, list := strings.Cut(w.Key, "[")
			if list {
				flag = "header"
			}
			errs[i] = fmt.Errorf("--%s %s", flag, w.Detail)
		}
		return wrongUsage(errors.Join(errs...))
	}
	find := func() (admin.Checked, error) { return findInFile(c.file, q) }
	if running {
		find = func() (found admin.Checked, err error) {
			body, err := json.Marshal(c.asked)
			if err == nil {
				err = c.client.edit(ctx, asking{method: http.MethodPost, path: "/v1/check", header: map[string]string{"Content-Type": "application/json"}, body: body}, &found)
			}
			return found, err
		}
	}
	found, err := find()
	if err != nil {
		return err
	}
	if c.asJSON {
		p.printJSON(found)
		return nil
	}
	p.printFinding(found)
	return nil
}

// findInFile looks with the rooms of a file.
func findInFile(file string, q gateway.Probe) (admin.Checked, error) {
	host, _ := os.Hostname() // names a node that does not run here
	f := config.Load(file, config.Options{Host: host, Environ: os.Environ()})
	if err := f.Err(); err != nil {
		return admin.Checked{}, err
	}
	rooms, err := server.Rooms(f.Config)
	if err != nil {
		return admin.Checked{}, err
	}
	found, err := gateway.Find(gateway.Config{Rooms: rooms, Prefix: f.Config.Prefix, CountryHeader: f.Config.CountryHeader}, q)
	return admin.CheckedOf(q, found), err
}

func (p *program) printFinding(f admin.Checked) {
	fmt.Fprintf(p.stdout, "%s %s\n", f.Method, f.URL)
	if f.Route != nil {
		fmt.Fprintf(p.stdout, "room %s, by its route %s%s\n", f.Room, f.Route.Host, f.Route.Path)
	}
	fmt.Fprintln(p.stdout, fateText(f))
	if len(f.Others) > 0 {
		fmt.Fprintf(p.stdout, "Servers may read it as an address of %s too, so it needs that pass as well.\n", strings.Join(f.Others, " and "))
	}
	if f.Path == "" && f.Room != "" {
		fmt.Fprintln(p.stdout, "Servers read this path in different ways, so no rule about paths is met.")
	}
	if len(f.Rules) == 0 {
		return
	}
	unknown := false
	rows := make([][]string, len(f.Rules))
	for i, v := range f.Rules {
		met := v.Met
		unknown = unknown || met == "unknown"
		if !v.Enabled {
			met += ", switched off"
		}
		rows[i] = []string{"rule " + fmt.Sprint(i+1), met, v.Description, strings.Join(strings.Fields(v.Expression), " ")}
	}
	fmt.Fprintln(p.stdout)
	_ = term.WriteTable(p.stdout, []string{"", "met", "description", "expression"}, rows) // a terminal that is gone cannot be told so
	if unknown {
		fmt.Fprintln(p.stdout, "\nunknown: it asks for something that this request does not tell; try --ip, --header or country_header")
	}
}

func fateText(f admin.Checked) string {
	to := cmp.Or(f.Origin, "the site behind another proxy (the room has no origin)")
	switch f.Fate {
	case gateway.FateOwn:
		return "It is for anteroom itself: below " + f.Prefix + " are its API and pages."
	case gateway.FateNone:
		return "No room has it: the gateway answers 404. Add a route, such as one with host \"*\"."
	case gateway.FateRefused:
		return "It is refused with 400: servers read its path in different ways, and a room has strict_paths."
	case gateway.FateSuspended:
		return "It goes straight to " + to + ": the room is suspended."
	case gateway.FateBypass:
		return fmt.Sprintf("It goes straight to %s: rule %d is met.", to, f.Rule)
	default:
		return "It needs a pass to go to " + to + ", or waits for one."
	}
}
