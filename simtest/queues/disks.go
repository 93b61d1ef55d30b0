package queues

import (
	"math/rand/v2"
	"slices"

	"github.com/anteroom/anteroom/internal/broker"
)

// Disk keeps one log of a node. The real one has the files that production has, and
// its code to read them.
type Disk interface {
	// Open opens the log after a crash, or for the first time.
	Open() (Content, error)
	Append(commands [][]byte) error
	// Fill has the next Append find no room at first.
	Fill(r *rand.Rand)
	// Overflow has an Append of a command fail for want of room. Some of it may be
	// there, or all, until the next one.
	Overflow(r *rand.Rand, command []byte) error
	// Compact replaces the first commands by a snapshot of what they came to.
	Compact(upTo int, snapshot []byte) error
	// Tell has it known beside the log how far that goes, and returns that: no more
	// than what follows may be lost without a word.
	Tell() int
	// Crash ends the log in the middle of an Append of a command, if there is one.
	Crash(r *rand.Rand, writing []byte) error
	// Damage changes something of what lies there, and says what.
	Damage(r *rand.Rand) (string, error)
}

// Content is what a disk has when its log is opened.
type Content struct {
	From     int // so many commands are in Snapshot
	Snapshot []byte
	Commands [][]byte // that follow
	// Refused says why the log did not open as it was; then Content is what could be
	// kept of it. Empty: it did.
	Refused string
}

// DiskReached counts what happened to disks.
type DiskReached struct{ Torn, Hurt, Found, Compacted, Filled, Overflown int }

// onDisk is a log that is on a Disk.
type onDisk struct {
	disk      Disk
	has, told int
	writing   []byte         // is under way
	maybe     []byte         // was, when the power went
	over      bool           // the last command found no room
	hurt      string         // what happened to the disk since it was opened
	snapshots map[int]string // that were made, by the commands in them
	since     int            // commands since the last one
}

func onDisks() []broker.Kind { return []broker.Kind{broker.Durable, broker.Replicated} }

// writing notes that a command is on its way to the durable log.
func (n *node) writing(command []byte) {
	f := n.files[broker.Durable]
	if f == nil {
		return
	}
	f.writing = command
	if n.doomed > 0 {
		n.w.after(0, func() {
			if n.doomed > 0 {
				n.w.crash(n, n.doomed)
			}
		})
	}
}

// write has commands that are applied on the disk of a log.
func (n *node) write(k broker.Kind, commands [][]byte) {
	f, r := n.files[k], n.w.damage
	if f == nil || len(commands) == 0 {
		return
	}
	if n.w.o.Fills && n.w.brims.IntN(20) == 0 {
		f.disk.Fill(n.w.brims)
		n.w.Disks.Filled++
	}
	if err := f.disk.Append(commands); err != nil {
		n.w.oracle.fail("%v cannot write to its %v log: %v", n.m, k, err)
		return
	}
	f.writing, f.over = nil, false
	f.has += len(commands)
	f.since += len(commands)
	if r.IntN(8) == 0 {
		f.told = f.disk.Tell()
	}
	if f.since > 20 && r.IntN(20) == 0 {
		n.compact(k, f)
	}
}

// brims reports whether there is no room for a command of the durable log, which nobody
// has seen coming.
func (n *node) brims(p broker.Proposal) bool {
	w := n.w
	if p.Kind != broker.Durable || w.o.Disk == nil || !w.o.Fills || w.healed || w.brims.IntN(30) > 0 {
		return false
	}
	w.trouble(0)
	n.overflow(p.Command)
	return true
}

// overflow has the disk of the durable log try to take a command for which there is no
// room. It may be there after a crash, until another one is written.
func (n *node) overflow(command []byte) {
	n.doubt = command
	f := n.files[broker.Durable]
	if f == nil {
		return
	}
	if err := f.disk.Overflow(n.w.brims, command); err != nil {
		n.w.oracle.fail("%v: %v", n.m, err)
	}
	f.over = true
	n.w.Disks.Overflown++
}

func (n *node) compact(k broker.Kind, f *onDisk) {
	state := n.b.Snapshot(k)
	if err := f.disk.Compact(f.has, state); err != nil {
		n.w.oracle.fail("%v cannot compact its %v log: %v", n.m, k, err)
	}
	f.snapshots[f.has], f.since = string(state), 0
	n.w.Disks.Compacted++
}

// powerCut ends the logs of a node as they are, and may do something to its disks.
func (n *node) powerCut() {
	w := n.w
	for _, k := range onDisks() {
		f := n.files[k]
		f.maybe = f.writing
		if k == broker.Durable && n.doubt != nil {
			f.maybe = n.doubt
		}
		writing := f.maybe
		if f.over && w.brims.IntN(2) == 0 {
			writing = nil // it is there as it was when there was no room
		}
		if f.writing, f.over = nil, false; writing != nil {
			w.Disks.Torn++
		}
		if err := f.disk.Crash(w.damage, writing); err != nil {
			w.oracle.fail("%v cannot crash: %v", n.m, err)
		}
		if !w.o.Loses || w.damage.IntN(2) > 0 {
			continue
		}
		w.Disks.Hurt++
		what, err := f.disk.Damage(w.damage)
		if err != nil {
			w.oracle.fail("%v cannot be damaged: %v", n.m, err)
		}
		f.hurt = what
		w.note("%v: %s", n.m, what)
	}
}

// reopen opens the logs of a node and takes over what they have.
func (n *node) reopen() {
	w := n.w
	d := n.files[broker.Durable]
	have := n.restore(broker.Durable, n.disk)
	if have > len(n.disk) {
		n.disk = append(n.disk, d.maybe)
	}
	if have < len(n.disk) {
		n.giveUp(len(n.disk) - have)
	}
	d.maybe = nil
	n.applied = n.restore(broker.Replicated, w.group.log)
}

// restore opens a log and returns how many commands it has. Those must be the ones that
// were written; and none may be missing but those that the log says it has lost, that were being
// written, or, if something has happened to the disk, were just before.
func (n *node) restore(k broker.Kind, wrote [][]byte) int {
	f, o := n.files[k], &n.w.oracle
	c, err := f.disk.Open()
	if err != nil {
		o.fail("%v, after %s: the %v log does not open: %v", n.m, f.hurt, k, err)
		return len(wrote)
	}
	have := c.From + len(c.Commands)
	if f.maybe != nil {
		wrote = append(slices.Clip(wrote), f.maybe)
	}
	least := f.has
	if f.hurt != "" {
		least = f.told
	}
	switch {
	case c.Refused != "" && f.hurt == "":
		o.fail("%v: the %v log is refused, and nothing has happened to it: %s", n.m, k, c.Refused)
	case c.Refused == "" && have < least:
		o.fail("%v, after %s: the %v log has %d commands of %d, and says nothing", n.m, f.hurt, k, have, least)
	case have > len(wrote):
		o.fail("%v, after %s: the %v log has %d commands, and %d were written", n.m, f.hurt, k, have, len(wrote))
	case c.From > 0 && f.snapshots[c.From] != string(c.Snapshot):
		o.fail("%v, after %s: the snapshot of the %v log is another", n.m, f.hurt, k)
	}
	for i, command := range c.Commands {
		if o.err == nil && string(wrote[c.From+i]) != string(command) {
			o.fail("%v, after %s: command %d of the %v log is another", n.m, f.hurt, c.From+i, k)
		}
	}
	if o.err != nil {
		return len(wrote)
	}
	if c.Refused != "" {
		n.w.Disks.Found++
		n.w.note("%v: the %v log is refused: %s", n.m, k, c.Refused)
	}
	if c.From > 0 {
		if err := n.b.Restore(n.time(), k, c.Snapshot); err != nil {
			o.fail("%v: the snapshot of the %v log: %v", n.m, k, err)
		}
	}
	n.apply(k, c.Commands)
	f.has, f.told, f.hurt, f.since = have, f.disk.Tell(), "", len(c.Commands)
	return have
}
