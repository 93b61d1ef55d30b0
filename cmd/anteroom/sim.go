package main

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/trials"
	"github.com/anteroom/anteroom/simtest"
)

// simulation is `anteroom sim`.
type simulation struct {
	*program
	batchFlags
	options simtest.Options
	event   time.Duration // after the beginning; 0: none
	shuffle bool
	typed   string // flags that make the runs what they are
}

func (p *program) simCommand() *cobra.Command {
	s := &simulation{program: p, options: simtest.Options{
		Nodes: 3, Users: 500, Span: 20 * time.Second,
		Rooms: []eviction.Room{{Name: "shop", Target: 20, Session: 5 * time.Second}},
		Load:  simtest.Load{Browse: simtest.Range{Min: time.Second, Max: 3 * time.Second}, Sticky: true},
		Net:   simtest.Net{Latency: simtest.Range{Min: 500 * time.Microsecond, Max: 2 * time.Millisecond}},
		After: simtest.Measure,
	}}
	s.runs = 1
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a cluster and its visitors from a seed",
		Long: `Simulate a cluster, its network, its failures and its visitors, all from one
seed: the same seed and flags give the same run, event by event. The nodes are
those of production; every promise of theirs is checked while they run.`,
		Example: `  anteroom sim --nodes 5 --users 2000 --kill 1 --add 1 --runs 20
  anteroom sim --seed 7 --trace | less
  anteroom sim --users 10000 --target 300 --span 5m --out plots
  anteroom sim --users 10000 --target 300 --event 30s --shuffle --out plots`,
		Args: noCommand,
	}
	f := &flagSet{FlagSet: cmd.Flags()}
	s.define(f, "how many runs, each from its own seed")
	s.defineWorld(f)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s.finishOptions(f)
		if err := f.err(); err != nil {
			return err
		}
		s.typed = given(cmd.Flags(), "seed", "runs", "workers", "out", "json", "trace")
		return s.run(cmd.Context())
	}
	cmd.AddCommand(p.thesisCommand())
	return cmd
}

func (s *simulation) defineWorld(f *flagSet) {
	o, room := &s.options, &s.options.Rooms[0]
	f.whole(&o.Nodes, "nodes", 1, 256, "nodes that found the cluster")
	f.whole(&o.Users, "users", 1, 10_000_000, "people who come")
	f.duration(&o.Span, "span", time.Second, 24*time.Hour, "people come and nodes fail within it")
	f.whole(&room.Target, "target", 1, 1_000_000_000, "people on the site at a time, at most")
	f.duration(&room.Session, "session", 100*time.Millisecond, time.Hour, "a pass is good this long without a refresh")
	f.span(&o.Load.Browse, "visit", time.Hour, "how long people stay")
	f.whole(&room.NewPerMinute, "new-users-per-minute", 0, 100_000_000, "let in at most so many a minute; 0: no limit")
	choice(f, &room.Method, "method", "fifo", "who of the waiting goes next",
		[]string{"fifo", "random"}, []eviction.Method{eviction.FIFO, eviction.Random})
	choice(f, &room.Algorithm, "algorithm", "cut", "how the waiting are called: many by a wave, or one by a deleteMin",
		[]string{"cut", "qpid"}, []eviction.Algorithm{eviction.ByCut, eviction.ByQPID})
	f.duration(&s.event, "event", 0, 24*time.Hour, "the doors open this long after the beginning; people gather before; 0: they are open")
	f.BoolVar(&s.shuffle, "shuffle", false, "with --event: who gathered is put in random order when they open")
	f.BoolVar(&room.QueueAll, "queue-all", false, "everyone queues, also while there is room")
	f.whole(&o.Faults.Kills, "kill", 0, 255, "nodes that crash")
	f.whole(&o.Faults.Adds, "add", 0, 255, "nodes that join")
	f.whole(&o.Faults.Partitions, "partition", 0, 1000, "times that the network splits, for some seconds")
	f.span(&o.Net.Latency, "latency", 10*time.Second, "between nodes, one way")
	o.Cluster = o.Cluster.WithDefaults()
	f.duration(&o.Cluster.Period, "period", 10*time.Millisecond, time.Second, "between two waves")
	o.Cluster.Copies = 1
	f.whole(&o.Cluster.Copies, "copies", 0, 1, "other nodes that keep each place in line")
}

// finishOptions checks what only flags together tell, and fills in what
// follows from them.
func (s *simulation) finishOptions(f *flagSet) {
	o, room := &s.options, &s.options.Rooms[0]
	s.check(f, s.runs)
	if o.Nodes+o.Faults.Adds > 256 {
		f.wrong("--nodes %d and --add %d: give at most 256 in all", o.Nodes, o.Faults.Adds)
	}
	if o.Faults.Kills >= o.Nodes+o.Faults.Adds {
		f.wrong("--kill %d: of %d nodes and %d added give at most %d; somebody has to stay", o.Faults.Kills, o.Nodes, o.Faults.Adds, o.Nodes+o.Faults.Adds-1)
	}
	if room.Method == eviction.Random && room.Algorithm == eviction.ByQPID {
		f.wrong("--method random: a draw needs --algorithm cut")
	}
	if s.shuffle && (s.event == 0 || room.Method == eviction.Random) {
		f.wrong("--shuffle: it is for the start of an --event in a room with --method fifo")
	}
	if s.event > 0 && room.Algorithm == eviction.ByQPID {
		f.wrong("--event: it needs --algorithm cut")
	}
	if s.event > 0 {
		room.Event = eviction.Event{Start: simtest.WallAt(s.event), Shuffle: s.shuffle, Seed: sha256.Sum256(binary.BigEndian.AppendUint64(nil, s.seed))}
	}
	o.Seed = s.seed
	o.Cluster.Urgent = min(o.Cluster.Urgent, o.Cluster.Period)
	o.Limit = trials.Patience(o)
	trials.Kill(o, o.Faults.Kills)
}
