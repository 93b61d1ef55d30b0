package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/server"
)

func (p *program) serveCommand() *cobra.Command {
	var file, admissions string
	var keep admissionsKept
	var profiles, watch bool
	logs := logFlags{level: slog.LevelInfo}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one node",
		Long: `Run one node of a waiting room until Ctrl-C or SIGTERM. Then everybody on the site,
with the slots that they use, and everybody who waits go to the other nodes, and it
takes its leave.

Every key outside rooms has a variable, such as ANTEROOM_NODE_ID for node.id.`,
		Example: "  anteroom serve --config anteroom.yaml",
		Args:    noCommand,
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration `FILE`; see anteroom config check")
	cmd.Flags().StringVar(&admissions, "admissions", "", "append what happens to each visitor to `FILE`, for anteroom report; packed and put aside at midnight UTC")
	cmd.Flags().IntVar(&keep.size, "admissions-size", 100, "put it aside before it is larger than so many `MIB`; 0: by the day alone")
	cmd.Flags().IntVar(&keep.days, "admissions-days", 32, "remove what was put aside after so many `DAYS`; 0: never")
	cmd.Flags().BoolVar(&watch, "watch", false, "bring changed rooms of the configuration file to the cluster, as SIGHUP does, when the file changes")
	cmd.Flags().BoolVar(&profiles, "pprof", false, "show profiles of the process on the admin port, below /debug/pprof/")
	set := settingFlags(cmd)
	logs.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" && !cmd.Flags().Changed("join") {
			return wrongUsage(errors.New("--config is missing; name the configuration file, such as docs/anteroom.yaml, or --join a cluster that has one"))
		}
		if watch && file == "" {
			return wrongUsage(errors.New("--watch needs a file; name it by --config"))
		}
		watched := newWatcher(file)
		load := func() *config.File {
			host, _ := os.Hostname() // config says what to do if no name is left
			o := config.Options{Host: host, Environ: os.Environ(), Set: set()}
			if file == "" {
				return config.Flags(o) // rooms and keys come from the other nodes
			}
			return server.CheckPages(config.Load(file, o))
		}
		f := load()
		if err := f.Err(); err != nil {
			return err
		}
		log := logs.logger(p.stderr)
		for _, w := range f.Warnings {
			log.Warn(w.Error())
		}
		o := server.Options{Version: thisVersion(), Logger: log, Adopts: f.AdoptsCluster(), DefaultGRPC: f.DefaultGRPC(), Profiles: profiles}
		if keep.size < 0 || keep.days < 0 {
			return wrongUsage(errors.New("--admissions-size and --admissions-days are whole numbers; 0 for no bound"))
		}
		if admissions != "" {
			w, err := openAdmissions(admissions, keep, log)
			if err != nil {
				return err
			}
			defer w.close()
			o.Admission = w.write
		}
		s := server.New(f.Config, o)
		stop := onHangup(func() { reload(s, load(), log) })
		defer stop()
		if watch {
			if err := watched.remember(string(f.Config.Node.Data)); err != nil {
				return err
			}
			go watched.run(cmd.Context(), s.Serving, func() { reload(s, load(), log) }, log)
		}
		go tuneHeap(cmd.Context())
		return s.Run(cmd.Context())
	}
	return cmd
}

// onHangup calls f at each SIGHUP until it is stopped.
func onHangup(f func()) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-signals:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}

// reload makes the rooms of the file, and the settings of its queues, those of the
// cluster. With any mistake in the file nothing changes.
func reload(s *server.Server, f *config.File, log *slog.Logger) {
	if err := f.Err(); err != nil {
		log.Error("nothing was reloaded", "err", err)
		return
	}
	select {
	case <-s.Ready():
	default:
		log.Warn("nothing was reloaded: the node is still starting; send SIGHUP again")
		return
	}
	rooms, queues := s.SetRooms(f.Config.Rooms), s.SetQueues(context.Background(), f.Config.Queues)
	if rooms != nil {
		log.Error("not all rooms were reloaded", "err", rooms)
	}
	if queues != nil {
		log.Error("not all queues were reloaded", "err", queues)
	}
	if rooms == nil && queues == nil {
		log.Info("reloaded the rooms and the settings of the queues; all else takes a restart")
	}
}

// settingFlags adds a flag for each of the keys that differ from node to node,
// and returns how to read those that were given.
func settingFlags(cmd *cobra.Command) func() []config.Setting {
	flags := []struct{ name, key, usage string }{
		{"id", "node.id", "the node's name, unique in the cluster"},
		{"gateway", "node.gateway", "`HOST:PORT` for visitors"},
		{"admin", "node.admin", "`HOST:PORT` for operators"},
		{"peer", "node.peer", "`HOST:PORT` for the other nodes"},
		{"grpc", "node.grpc", "`HOST:PORT` for programs, or none"},
		{"gossip", "node.gossip", "`HOST:PORT` for gossip"},
		{"join", "node.join", "`HOST:PORT` of members, with commas"},
		{"expect", "node.expect", "how many nodes start a new cluster together"},
		{"gossip-key-file", "security.gossip_key_file", "`FILE` of the keys by which members know each other, made by anteroom keys cluster"},
		{"data", "node.data", "`DIRECTORY` for what must survive a restart"},
	}
	values := make([]string, len(flags))
	for i, f := range flags {
		cmd.Flags().StringVar(&values[i], f.name, "", f.usage)
	}
	return func() []config.Setting {
		var set []config.Setting
		for i, f := range flags {
			if cmd.Flags().Changed(f.name) {
				set = append(set, config.Setting{Key: f.key, Value: values[i], From: "--" + f.name})
			}
		}
		return set
	}
}

// logFlags say how much is logged, and in what form.
type logFlags struct {
	level slog.Level
	json  bool
}

func (l *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().TextVar(&l.level, "log-level", l.level, "debug, info, warn or error")
	cmd.Flags().BoolVar(&l.json, "log-json", false, "log JSON lines")
}

func (l *logFlags) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: l.level}
	if l.json {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
