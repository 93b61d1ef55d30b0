package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/load"
	"github.com/anteroom/anteroom/internal/term"
)

// loading is `anteroom load`.
type loading struct {
	*program
	config  load.Config
	out     string
	json    bool
	compare bool
}

// usersDefault come unless flags say how many, or for how long.
const usersDefault = 1000

func (p *program) loadCommand() *cobra.Command {
	l := &loading{program: p, config: load.Config{
		URLs: []string{"http://127.0.0.1:8080"}, Room: demoRoom, Prefix: "/_anteroom", Page: "/", Connections: 64,
		Patience: time.Minute, Seed: 1, Arrivals: load.Arrivals{Drain: -1},
	}}
	cmd := &cobra.Command{
		Use:   "load --url URL...",
		Short: "Send visitors to a running waiting room, and measure it",
		Long: `Send visitors to a running waiting room over HTTP and measure throughput,
latencies, waits and fairness. Visitors join, check in when they are told to,
leave the queue when they are called, stay, and end their session.

All of --users come at once, as many at a time as --concurrency says; with --rate
they come at random moments, so many a second on average, whatever the answers
take. With more than one --url each visitor stays with the gateway that it met
first. A join may take a wave or two: for a crowd that has to queue, give some
hundred --connections.`,
		Example: `  anteroom load --url http://127.0.0.1:8080 --users 5000
  anteroom load --url http://10.0.0.1:8080 --url http://10.0.0.2:8080 --rate 200 --duration 1m --stay 10s --out report
  anteroom load --users 100000 --concurrency 100000 --check-in-every 10s --duration 1m --drain 0s
  anteroom load --compare before/report.json after/report.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if l.compare {
				return nil // they are files
			}
			return noCommand(cmd, args)
		},
	}
	f := &flagSet{FlagSet: cmd.Flags()}
	l.define(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if l.compare {
			return l.comparison(args)
		}
		l.finish(f)
		if err := f.err(); err != nil {
			return err
		}
		return l.run(cmd.Context())
	}
	return cmd
}

func (l *loading) define(f *flagSet) {
	c, a, m := &l.config, &l.config.Arrivals, &l.config.Manners
	f.StringArrayVar(&c.URLs, "url", c.URLs, "`URL` of a node's gateway; may be repeated")
	f.StringVar(&c.Room, "room", c.Room, "`name` of the room")
	f.StringVar(&c.Prefix, "prefix", c.Prefix, "`path` that the gateway's own pages begin with")
	a.Users = usersDefault
	f.whole(&a.Users, "users", 1, 100_000_000, "visitors in all; without it, as many as come within --duration, if that is given")
	f.number(&a.Rate, "rate", "n", 1e-3, 1e6, "visitors a second, coming at random")
	f.add("concurrency", "n", "", "visitors at a time, those who wait included, where there is no --rate; as many as --users, and at most 10,000", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000_000 {
			return errors.New("give a whole number from 1 to 10000000")
		}
		a.Concurrency = n
		return nil
	})
	f.duration(&a.Duration, "duration", 0, 24*time.Hour, "nobody comes later than this; 0s: they come as long as it takes")
	f.add("drain", "time", "", "how long after --duration those who are there may take; as long as it takes", func(text string) (err error) {
		if a.Drain, err = time.ParseDuration(text); err != nil || a.Drain < 0 {
			return errors.New("give a time such as 0s or 1m")
		}
		return nil
	})
	f.duration(&m.Stay, "stay", 0, 24*time.Hour, "how long a visitor stays on the site, give or take a half")
	f.whole(&m.Browse, "browse", 0, 1000, "pages that a visitor looks at during its stay, through the reverse proxy")
	f.StringVar(&c.Page, "page", c.Page, "`path` of those")
	f.number(&m.Abandon, "abandon", "share", 0, 1, "this share of visitors gives up while it waits")
	f.number(&m.Return, "return", "share", 0, 1, "this share of visitors comes back once, with its pass or to join again")
	f.BoolVar(&m.NoEnd, "no-end", false, "visitors go without ending their session; their places are taken until the passes expire")
	f.BoolVar(&m.JoinAsync, "join-async", false, "visitors want their tickets at once, and do not wait for a wave to say at which position")
	f.BoolVar(&m.NoJWT, "no-jwt", false, "visitors have no use for pass_jwt, and say so: nothing is signed for them")
	f.duration(&m.CheckInEvery, "check-in-every", 0, time.Hour, "how often those who wait ask; 0s: when they are told to")
	f.whole(&c.Connections, "connections", 1, 50_000, "connections to all gateways together")
	f.whole(&c.Limit, "limit", 0, 1_000_000_000, "the room's total_active_users, for over_limit_max; 0: not measured")
	f.duration(&c.Patience, "patience", time.Second, time.Hour, "a visitor goes home when it gets no useful answer for so long")
	f.BoolVar(&c.Insecure, "insecure", false, "accept any certificate")
	f.seed(&c.Seed, "seed of what is drawn: who comes when, stays how long, gives up, returns")
	f.StringVar(&l.out, "out", "", "write report.html and report.json into this `directory`")
	f.BoolVar(&l.json, "json", false, "print the report as one JSON object")
	f.BoolVar(&l.compare, "compare", false, "make no load, but print two reports side by side: --compare A.json B.json")
}

// number defines a flag of a number within bounds, which may have a fraction.
func (f *flagSet) number(to *float64, name, kind string, low, high float64, usage string) {
	f.add(name, kind, strconv.FormatFloat(*to, 'g', -1, 64), usage, func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= low && n <= high) {
			return fmt.Errorf("give a number from %g to %g", low, high)
		}
		*to = n
		return nil
	})
}

// finish checks what only flags together tell, and fills in what follows.
func (l *loading) finish(f *flagSet) {
	a := &l.config.Arrivals
	if !f.Changed("users") && a.Duration > 0 && (a.Rate > 0 || a.Concurrency > 0) {
		a.Users = 0
	}
	if a.Rate > 0 && !f.Changed("users") && a.Duration == 0 {
		f.wrong("--rate %g: for how long? give --duration or --users", a.Rate)
	}
	if a.Rate > 0 && a.Concurrency > 0 {
		f.wrong("--concurrency %d: visitors who come at a --rate do not wait for each other; leave out one of the two", a.Concurrency)
	}
	if a.Drain >= 0 && a.Duration == 0 {
		f.wrong("--drain %s: after what? give --duration too", short(a.Drain))
	}
	for _, u := range l.config.URLs {
		if _, err := load.ParseURL(u); err != nil {
			f.wrong("--url %w", unmarked(err))
		}
	}
}

// unmarked is err without the mark that it is about a configuration.
func unmarked(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), load.ErrConfig.Error()+": "))
}

func (l *loading) run(ctx context.Context) error {
	g, err := load.New(l.config)
	if errors.Is(err, load.ErrConfig) {
		return wrongUsage(unmarked(err))
	}
	if err == nil {
		err = g.Reach(ctx)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("stopped before it had reached the gateway: nobody came, and nothing was measured")
	case err != nil:
		return err
	}
	folder, err := openFolder(l.out)
	if err != nil {
		return err
	}
	r := l.watched(ctx, g)
	tables := loadTables(r)
	if folder != nil {
		err = errors.Join(folder.Write("report.json", r.WriteJSON), folder.Write("report.html", func(w io.Writer) error { return r.WriteHTML(w, tables) }))
	}
	if l.json {
		l.printJSON(r)
	} else {
		l.print(r, tables)
	}
	if folder != nil && err == nil && !l.json {
		fmt.Fprintf(l.stdout, "\nwrote %s: %s\n", l.out, strings.Join(folder.Files(), ", "))
	}
	return errors.Join(lostVisitors(r), stoppedLoad(r), wrap("--out", err))
}

// watched runs g and shows how far it is.
func (l *loading) watched(ctx context.Context, g *load.Generator) *load.Result {
	a := &l.config.Arrivals
	total := int64(a.Users)
	if expected := int64(a.Rate * a.Duration.Seconds()); expected > 0 && (total == 0 || expected < total) {
		total = expected
	}
	bar := term.NewProgress(term.ProgressConfig{
		Out: l.stderr, Live: term.IsTerminal(l.stderr), Label: "visitors", Total: total, Now: l.now,
		Note: func() string { return term.Count(g.Waiting()) + " wait" },
	})
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		shown := int64(0)
		for {
			n := g.Done()
			bar.Add(n - shown)
			shown = n
			select {
			case <-every.C:
			case <-ended:
				bar.Add(g.Done() - shown)
				bar.Finish()
				return
			}
		}
	}()
	r := g.Run(ctx)
	close(ended)
	<-over
	return r
}

// lostVisitors is the error of a run in which some did not get through.
func lostVisitors(r *load.Result) error {
	if r.Visitors.Lost == 0 {
		return nil
	}
	var why []string
	for _, f := range load.Named(r.Lost) {
		why = append(why, f.Value+" "+f.Name)
	}
	return fmt.Errorf("%s of %s were lost: %s", term.Count(r.Visitors.Lost), counted(int(r.Visitors.Came), "visitor"), strings.Join(why, ", "))
}

// stoppedLoad says that somebody stopped the run.
func stoppedLoad(r *load.Result) error {
	if !r.Stopped {
		return nil
	}
	return fmt.Errorf("stopped after %s; the figures are of those who came until then", counted(int(r.Visitors.Came), "visitor"))
}
