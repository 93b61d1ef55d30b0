package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/replog"
)

// onDisk is a command about the logs of queues in a directory.
type onDisk struct {
	*program
	data   string
	accept bool
	last   bool
	asJSON bool
}

func (o *onDisk) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&o.data, "data", "", "`DIRECTORY` of a node, node.data; or of one of its logs")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object for each log")
	_ = cmd.MarkFlagRequired("data") // it was just defined
	return cmd
}

func (p *program) queueVerifyCommand() *cobra.Command {
	o := &onDisk{program: p}
	return o.flags(&cobra.Command{
		Use:   "verify",
		Short: "Check the disk of a node's durable and replicated queues",
		Long: `Read all that a node keeps of its durable and replicated queues, and check every
checksum, whether the node runs or not. One that runs does so by itself, at its
start and once an hour, and says in its log what it finds.

Exit codes: 0 all is well, 1 something is damaged or cannot be read.`,
		Example: `  anteroom queue verify --data ./data`,
		Args:    noCommand,
		RunE: func(*cobra.Command, []string) error {
			bad := 0
			err := o.each(func(dir, note string) error {
				r, err := replog.Verify(dir, note)
				if err == nil && r.Damage != nil {
					bad++
				}
				if err == nil {
					o.tell(dir, r)
				}
				return err
			})
			if err == nil && bad > 0 {
				err = fmt.Errorf("%s damaged; bring the directory back from a copy, let a replicated one be made anew by starting the node, or give up what is lost of a durable one: anteroom queue recover --data %s --accept-loss",
					logsText(bad), o.data)
			}
			return err
		},
	})
}

func (p *program) queueRecoverCommand() *cobra.Command {
	o := &onDisk{program: p}
	cmd := o.flags(&cobra.Command{
		Use:   "recover",
		Short: "Give up what a damaged disk has lost of durable queues",
		Long: `Make the damaged logs of a stopped node's durable queues such that it starts again:
what came before the damage is kept, and what came after it is lost. The files are
set aside as they were. Replicated queues need none of this: their node makes its
copy anew from the others when it starts.

Where the disks of so many replicas are gone for good that those which are left are no
majority, --last-replica has the replicated queues go on from this node's copy alone.
What others acknowledged and this copy does not have is lost; take the copy of which
verify tells the last entry. The other nodes need a replicated log that is empty, so
move the directories that they have away before they start. Durable queues are left
as they are.`,
		Example: `  anteroom queue recover --data ./data --accept-loss
  anteroom queue recover --data ./data --accept-loss --last-replica`,
		Args: noCommand,
		RunE: func(*cobra.Command, []string) error {
			if !o.accept {
				return wrongUsage(errors.New("without --accept-loss nothing is done; anteroom queue verify says what is damaged"))
			}
			return o.each(o.recover)
		},
	})
	cmd.Flags().BoolVar(&o.last, "last-replica", false, "go on with replicated queues from this copy alone")
	cmd.Flags().BoolVar(&o.accept, "accept-loss", false, "give up what is lost")
	return cmd
}

func (o *onDisk) recover(dir, note string) error {
	var l replog.Loss
	var err error
	switch {
	case !o.last:
		l, err = replog.Recover(dir, note)
	case filepath.Base(dir) == "durable":
		return nil
	default:
		l, err = replog.RecoverLast(dir)
	}
	if err == nil {
		o.tellLoss(dir, l)
	}
	return err
}

// each calls do for each log in the directory, with the node's note that there is one
// if it is that of a node.
func (o *onDisk) each(do func(dir, note string) error) error {
	found := false
	for _, kind := range []string{"durable", "replicated"} {
		dir, note := filepath.Join(o.data, "queues", kind), filepath.Join(o.data, "queues-"+kind)
		if !exists(dir) && !exists(note) {
			continue
		}
		found = true
		if err := do(dir, note); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if found || exists(filepath.Join(o.data, "queues")) {
		return nil
	}
	if err := do(o.data, ""); err != nil {
		return fmt.Errorf("%s: %w", o.data, err)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

func logsText(n int) string {
	if n == 1 {
		return "a log is"
	}
	return fmt.Sprintf("%d logs are", n)
}

// diskReport is what verify and recover print of one log as JSON.
type diskReport struct {
	Directory string `json:"directory"`
	Node      string `json:"node"`
	Kind      string `json:"kind"`
	First     uint64 `json:"first_entry"`
	Last      uint64 `json:"last_entry"`
	Snapshot  uint64 `json:"snapshot_up_to_entry"`
	Running   bool   `json:"running"`
	Damage    string `json:"damage,omitempty"`
	LostFirst uint64 `json:"lost_first_entry,omitempty"`
	LostLast  uint64 `json:"lost_last_entry,omitempty"`
	Kept      uint64 `json:"kept_up_to_entry,omitempty"`
	Aside     string `json:"set_aside_as,omitempty"`
}

func reportOf(dir string, r replog.Report) diskReport {
	d := diskReport{Directory: dir, Node: r.Node, Kind: r.Kind, First: r.First, Last: r.Last, Snapshot: r.Snapshot, Running: r.Running}
	if r.Damage != nil {
		d.Damage, d.LostFirst, d.LostLast = r.Damage.Error(), r.Damage.First, r.Damage.Last
	}
	return d
}

func (o *onDisk) tell(dir string, r replog.Report) {
	switch {
	case o.asJSON:
		o.printJSON(reportOf(dir, r))
	case r.Damage != nil:
		fmt.Fprintf(o.stdout, "%s: DAMAGED: %v\n", dir, r.Damage)
	default:
		running := ""
		if r.Running {
			running = ", which runs"
		}
		fmt.Fprintf(o.stdout, "%s: sound: %s queues of %s%s, entries %d to %d, snapshot up to %d\n", dir, r.Kind, r.Node, running, r.First, r.Last, r.Snapshot)
	}
}

func (o *onDisk) tellLoss(dir string, l replog.Loss) {
	switch {
	case o.asJSON:
		d := reportOf(dir, l.Report)
		d.Kept, d.Aside = l.Kept, l.Aside
		o.printJSON(d)
	case l.Damage == nil && o.last:
		o.tellLast(dir, l)
	case l.Damage == nil:
		fmt.Fprintf(o.stdout, "%s: sound, so nothing was changed\n", dir)
	case l.Aside == "": // it was gone
		fmt.Fprintf(o.stdout, "%v.\nNothing of it could be kept.\n", l.Damage)
	case l.Kept == 0:
		fmt.Fprintf(o.stdout, "%v.\nNothing of it could be kept. The files as they were: %s\n", l.Damage, l.Aside)
	default:
		fmt.Fprintf(o.stdout, "%v.\nKept up to entry %d. The files as they were: %s\n", l.Damage, l.Kept, l.Aside)
		if o.last {
			o.tellLast(dir, l)
		}
	}
}

func (o *onDisk) tellLast(dir string, l replog.Loss) {
	fmt.Fprintf(o.stdout, "%s: goes on from this copy alone, which ends with entry %d. What other replicas acknowledged after that is lost.\n"+
		"Before other nodes start, move their directories of replicated queues away: they take part with empty ones.\n", dir, l.Kept)
}
