package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/rules"
	"github.com/anteroom/anteroom/internal/server"
	"github.com/anteroom/anteroom/internal/term"
)

// roomsCheck is the request that `rooms check` is about.
type roomsCheck struct {
	file, url, method, ip string
	headers               []string
	asJSON                bool
}

func (p *program) roomsCheckCommand() *cobra.Command {
	var c roomsCheck
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell which room and which bypass rule a request meets",
		Long: `Tell what would become of a request under a configuration file: which room it is
for, by which route, and what each bypass rule says of it. Nothing is sent. What
is not given is not known, and a rule that asks for it is not met. The country is
the header that country_header names.`,
		Example: `  anteroom rooms check --url https://shop.example.com/assets/app.css
  anteroom rooms check --url https://shop.example.com/ --ip 192.0.2.7 --header 'User-Agent: Googlebot/2.1'`,
		Args: noCommand,
		RunE: func(*cobra.Command, []string) error { return p.roomsCheck(c) },
	}
	cmd.Flags().StringVar(&c.file, "config", "anteroom.yaml", "the configuration `FILE`")
	cmd.Flags().StringVar(&c.url, "url", "", "the `URL` as the browser has it")
	cmd.Flags().StringVar(&c.method, "method", http.MethodGet, "the request's `METHOD`")
	cmd.Flags().StringVar(&c.ip, "ip", "", "the visitor's `ADDRESS`, as trusted_proxies tell it")
	cmd.Flags().StringArrayVar(&c.headers, "header", nil, "a header of the request, such as 'Cookie: staff=yes'; may be repeated")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print one JSON object")
	return cmd
}

// probe reads the flags. The error lists everything that is wrong with them.
func (c *roomsCheck) probe() (gateway.Probe, error) {
	var errs []error
	q := gateway.Probe{Method: strings.ToUpper(c.method), Header: http.Header{}}
	var err error
	if q.URL, err = url.Parse(c.url); err != nil || q.URL.Host == "" || q.URL.Scheme != "http" && q.URL.Scheme != "https" {
		errs = append(errs, fmt.Errorf("--url %q: give the whole address, such as https://shop.example.com/tickets", c.url))
	} else if q.URL.Path == "" {
		q.URL.Path = "/"
	}
	if c.ip != "" {
		a, err := netip.ParseAddr(c.ip)
		if err != nil {
			errs = append(errs, fmt.Errorf("--ip %q: give an address such as 192.0.2.7", c.ip))
		}
		q.From = a.Unmap()
	}
	for _, h := range c.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			errs = append(errs, fmt.Errorf("--header %q: give a name and a value, such as 'Cookie: staff=yes'", h))
			continue
		}
		q.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if len(errs) > 0 {
		return q, wrongUsage(errors.Join(errs...))
	}
	return q, nil
}

func (p *program) roomsCheck(c roomsCheck) error {
	q, err := c.probe()
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // names a node that does not run here
	f := config.Load(c.file, config.Options{Host: host, Environ: os.Environ()})
	if err := f.Err(); err != nil {
		return err
	}
	rooms, err := server.Rooms(f.Config)
	if err != nil {
		return err
	}
	found, err := gateway.Find(gateway.Config{Rooms: rooms, Prefix: f.Config.Prefix, CountryHeader: f.Config.CountryHeader}, q)
	if err != nil {
		return err
	}
	if c.asJSON {
		p.printJSON(checkedJSON(q, found))
		return nil
	}
	p.printFinding(q, found, f.Config)
	return nil
}

// roomsCheckJSON is what `rooms check --json` prints.
type roomsCheckJSON struct {
	Method string         `json:"method"`
	URL    string         `json:"url"`
	Path   string         `json:"path"` // as rules see it; empty: ambiguous
	Fate   gateway.Fate   `json:"fate"`
	Room   string         `json:"room,omitempty"`
	Route  *routeJSON     `json:"route,omitempty"`
	Rule   int            `json:"rule,omitempty"` // that is met, from 1
	Rules  []verdictsJSON `json:"bypass_rules"`
}

type routeJSON struct {
	Host string `json:"host"`
	Path string `json:"path"`
}

type verdictsJSON struct {
	Description string `json:"description"`
	Expression  string `json:"expression"`
	Enabled     bool   `json:"enabled"`
	Met         string `json:"met"` // yes, no or unknown
}

func checkedJSON(q gateway.Probe, f gateway.Finding) roomsCheckJSON {
	out := roomsCheckJSON{Method: q.Method, URL: q.URL.String(), Path: f.Path, Fate: f.Fate, Rules: []verdictsJSON{}}
	if f.Room != nil {
		out.Room, out.Route = f.Room.Name, &routeJSON{f.Route.Host, f.Route.Path}
	}
	if f.Fate == gateway.FateBypass {
		out.Rule = metRule(f) + 1
	}
	for _, v := range f.Rules {
		out.Rules = append(out.Rules, verdictsJSON{v.Description, v.Expression, !v.Disabled, v.Truth.String()})
	}
	return out
}

// metRule is the first rule that is met, -1 if none is.
func metRule(f gateway.Finding) int {
	for i, v := range f.Rules {
		if v.Truth == rules.True && !v.Disabled {
			return i
		}
	}
	return -1
}

func (p *program) printFinding(q gateway.Probe, f gateway.Finding, c config.Config) {
	fmt.Fprintf(p.stdout, "%s %s\n", q.Method, q.URL)
	if f.Room != nil {
		fmt.Fprintf(p.stdout, "room %s, by its route %s%s\n", f.Room.Name, f.Route.Host, f.Route.Path)
	}
	fmt.Fprintln(p.stdout, fateText(f, c.Prefix))
	if f.Path == "" && f.Room != nil {
		fmt.Fprintln(p.stdout, "Servers read this path in different ways, so no rule about paths is met.")
	}
	if len(f.Rules) == 0 {
		return
	}
	unknown := false
	rows := make([][]string, len(f.Rules))
	for i, v := range f.Rules {
		met := v.Truth.String()
		unknown = unknown || v.Truth == rules.Unknown
		if v.Disabled {
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

func fateText(f gateway.Finding, prefix string) string {
	switch f.Fate {
	case gateway.FateOwn:
		return "It is for anteroom itself: below " + prefix + " are its API and pages."
	case gateway.FateNone:
		return "No room has it: the gateway answers 404. Add a route, such as one with host \"*\"."
	default:
	}
	to := "the site behind another proxy (the room has no origin)"
	if f.Room.Origin != nil {
		to = f.Room.Origin.Redacted()
	}
	switch f.Fate {
	case gateway.FateSuspended:
		return "It goes straight to " + to + ": the room is suspended."
	case gateway.FateBypass:
		return fmt.Sprintf("It goes straight to %s: rule %d is met.", to, metRule(f)+1)
	default:
		return "It needs a pass to go to " + to + ", or waits for one."
	}
}
