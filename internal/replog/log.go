package replog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"github.com/anteroom/anteroom/qpid"
)

const (
	entryMax      = 256 << 10 // bytes: an entry that has more takes no further command
	underWay      = 4         // entries that raft has and has not applied
	enqueueWait   = 2 * time.Second
	endWithin     = 5 * time.Second // what is under way, once it was told to end; then raft
	stuckAfter    = time.Second     // an entry that waits for longer may wait for room on other nodes' disks
	snapshotsKept = 1               // an older one is of no use, for its log is gone
)

// ErrRefused is a command that was not appended: it can be proposed again.
var ErrRefused = errors.New("the log did not take it")

// Config is what a log needs to know. The zero value of a number means its
// default.
type Config struct {
	Dir     string      // of its files, made if there is none; of nothing else
	Note    string      // a file elsewhere, which says that there is a log in Dir; empty: none
	Node    qpid.NodeID // this node's name
	Machine StateMachine
	// Leads is called with true when this node has begun to lead and everything
	// that was committed before is applied, with false at once when it is known to lead no more: in
	// turns, beginning with true, and never during a call of Machine's.
	Leads  func(bool)
	Logger *slog.Logger // nil: none
	Group  *Group       // of a replicated log; nil: a durable one

	WaitingMax   int           // commands that wait [8192]
	WaitingBytes int           // bytes of them [64 MiB]
	CommandMax   int           // bytes of one [256 KiB]
	CompactBytes int64         // the log grows by this much before a snapshot [64 MiB]
	SnapshotMax  int64         // bytes of a snapshot [1 GiB]
	ScrubEvery   time.Duration // all that is on the disk is read and checked this often [1h]

	segmentSize int       // bytes of a file of the log [4 MiB]
	on          types.VFS // where these are; tests have faulty ones; nil: the system's
	space       func(dir string) (free, total uint64, err error)
	through     func(entries) entries // tests put faults in the way of the disk; nil: none
}

// Log makes commands durable. Its methods are safe for concurrent use.
type Log struct {
	c       Config
	log     *slog.Logger
	machine *machine
	group   *group // nil: durable
	late    late

	// These are there once the log is open.
	raft  *raft.Raft
	disk  *disk
	shots *snapshots
	owner *owner

	notify chan bool
	wake   chan struct{}          // a token: commands wait
	flight chan flight            // entries that raft has, in order
	damage atomic.Pointer[Damage] // that was found while the log ran
	space  space

	looking sync.Mutex
	shrunk  time.Time // when a snapshot was last asked for to make room

	mu      sync.Mutex
	waiting []proposal
	bytes   int // of waiting
	ended   bool
}

// proposal is a command that waits.
type proposal struct {
	command []byte
	adds    bool // to the state
	then    func(result []byte, err error)
}

// flight is an entry under way.
type flight struct {
	proposals []proposal
	future    raft.ApplyFuture
}

// Open opens the log in c.Dir, or founds it, and restores the state from it. The
// error says what is wrong with the directory and what to do. The caller must
// call Run then, which tells about leadership, and closes the files. Where there is
// no room for what opening writes, Open does no more than to check what is there: Run
// opens the log once there is room, and until then Ready and Room say ErrFull.
func Open(c Config) (*Log, error) {
	c.WaitingMax = cmp.Or(c.WaitingMax, 8192)
	c.WaitingBytes = cmp.Or(c.WaitingBytes, 64<<20)
	c.CommandMax = cmp.Or(c.CommandMax, 256<<10)
	c.CompactBytes = cmp.Or(c.CompactBytes, 64<<20)
	c.SnapshotMax = cmp.Or(c.SnapshotMax, 1<<30)
	c.ScrubEvery = cmp.Or(c.ScrubEvery, time.Hour)
	c.segmentSize = cmp.Or(c.segmentSize, segmentDefault)
	if c.space == nil {
		c.space = spaceOf
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		c: c, log: c.Logger, late: late{open: make(chan struct{})}, notify: make(chan bool), wake: make(chan struct{}, 1), flight: make(chan flight, underWay),
		machine: &machine{
			alone: c.Group == nil, snapshotMax: c.SnapshotMax, leads: c.Leads, state: c.Machine, full: make(chan struct{}, 1), compact: c.CompactBytes,
		},
	}
	if c.Group != nil {
		if err := c.Group.complete(c.Node); err != nil {
			return nil, fmt.Errorf("the queues' directory %s: %w", c.Dir, err)
		}
		l.group = newGroup(l, *c.Group)
	}
	switch err := l.openOrRenew(); {
	case isFull(err):
		l.late.wait(err)
		l.log.Error("queues: the disk is full, so a log is not open yet; all else goes on", "dir", c.Dir, "err", err)
	case err != nil:
		return nil, err
	default:
		close(l.late.open)
	}
	return l, nil
}

// openOrRenew opens the log. A replicated one that is damaged is made anew.
func (l *Log) openOrRenew() error {
	dir := l.c.Dir
	var err error
	switch gone := Gone(dir, l.c.Note); {
	case gone == nil:
		err = l.open(l.late.lost)
	case l.c.Group == nil:
		return fmt.Errorf("%w. Is its disk mounted? Bring the directory back, or go on without what was in it: anteroom queue recover --data %s --accept-loss",
			gone, filepath.Dir(l.c.Note))
	default:
		l.log.Error("queues: this node's copy is gone and is made anew from the other replicas", "why", gone.Error())
		l.late.lost = true
		err = l.open(true)
	}
	if d := (*Damage)(nil); errors.As(err, &d) {
		if l.c.Group == nil {
			return fmt.Errorf("the queues' directory %s: %w. Nothing was changed. Bring the directory back from a copy, "+
				"or go on without what is lost: anteroom queue recover --data %s --accept-loss", dir, err, dir)
		}
		aside, failed := setAside(dir)
		if failed != nil {
			return fmt.Errorf("the queues' directory %s: %w; and it cannot be set aside for a copy of the other replicas': %w", dir, err, failed)
		}
		l.log.Error("queues: this node's copy is damaged and is made anew from the other replicas", "why", d.Error(), "set aside as", aside)
		l.late.lost = true
		err = l.open(true)
	}
	if err != nil {
		return fmt.Errorf("the queues' directory %s: %w", dir, err)
	}
	return nil
}

// setAside renames a damaged directory, so that a new one can take its place.
func setAside(dir string) (string, error) {
	for i := range 100 {
		aside := fmt.Sprintf("%s.damaged-%d", dir, i+1)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(dir, aside)
		}
	}
	return "", fmt.Errorf("there are a hundred damaged ones beside it already: %s.damaged-1 and on; remove them", dir)
}

// open opens the files and starts raft. If the directory before this one was lost,
// there is a group to which it belongs.
func (l *Log) open(lost bool) (err error) {
	kind := durableKind
	if l.c.Group != nil {
		kind = replicatedKind
	}
	if l.owner, err = openOwner(l.c.Dir, l.c.Node, kind, lost); err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened {
			_ = l.owner.close()
		}
	}()
	if err := noted(l.c.Note); err != nil {
		return err
	}
	logger := forRaft(l.log)
	if l.shots, err = openSnapshots(l.c.Dir, logger); err != nil {
		return err
	}
	if err := l.shots.sweep(); err != nil {
		return err
	}
	if l.disk, err = openDisk(l.c.Dir, logFiles{l.c.segmentSize, l.c.on}, l.owner, l.shots, logger); err != nil {
		return err
	}
	err = l.disk.dropCovered(l.shots)
	if l.c.through != nil {
		l.disk.entries = l.c.through(l.disk.entries)
	}
	if err == nil {
		err = l.owner.matches(l.disk)
	}
	if err == nil {
		err = l.start(logger)
	}
	if err != nil {
		if fault := l.disk.Fault(); isFull(fault) {
			err = fault // raft does not wrap it
		}
		_ = l.disk.Close()
		return err
	}
	opened = true
	return nil
}

// start starts raft.
func (l *Log) start(logger hclog.Logger) error {
	conf := raft.DefaultConfig()
	conf.Logger = logger
	conf.LocalID = serverOf(l.c.Node, l.owner.papers().Disk)
	conf.NotifyCh = l.notify
	conf.NoLegacyTelemetry = true
	conf.ShutdownOnRemove = false
	conf.MaxAppendEntries = 16 // of up to 512 KiB: an entry may be one full of commands
	conf.SnapshotThreshold = 1 << 62
	conf.SnapshotInterval = 24 * time.Hour // compact asks for them
	conf.TrailingLogs = 64                 // a member that was away for a moment needs no snapshot
	var transport raft.Transport
	founds := false
	switch p := l.owner.papers(); {
	case l.c.Group == nil:
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
		conf.TrailingLogs = 1
		_, transport = raft.NewInmemTransport(raft.ServerAddress(conf.LocalID))
		founds = true
	default:
		transport = l.group.transport(conf)
		founds = p.Founded
	}
	r, err := l.newRaft(conf, l.shots, transport, founds)
	if err != nil && l.group != nil {
		_ = l.group.net.Close()
	}
	l.raft = r
	return err
}

// newRaft starts raft, and founds the group if it must be and is not.
func (l *Log) newRaft(conf *raft.Config, files raft.SnapshotStore, t raft.Transport, founds bool) (*raft.Raft, error) {
	old, err := raft.HasExistingState(l.disk, l.disk, files)
	if err == nil && founds && old {
		old, err = l.unlessHalf(files)
	}
	if err != nil {
		return nil, err
	}
	if founds && !old {
		if err := raft.BootstrapCluster(conf, l.disk, l.disk, files, t, alone(conf.LocalID)); err != nil {
			return nil, err
		}
	}
	// Raft writes its term, though it has not changed: no more than that must be
	// written, and nothing of it be missing, where raft would wait.
	term, err := l.disk.GetUint64([]byte(termKey))
	if err == nil {
		err = l.disk.SetUint64([]byte(termKey), term)
	}
	if err != nil {
		return nil, err
	}
	l.disk.patient.Store(true)
	r, err := raft.NewRaft(conf, l.machine, l.disk, l.disk, files, t)
	if err != nil {
		return nil, cmp.Or(l.machine.failed, err)
	}
	return r, nil
}

// unlessHalf reports whether there is more of a log than half of its founding, and takes
// that back. Raft writes the term of a group and then its first entry. What has ended
// between the two, or had no room for the second, has a term and no members: raft
// takes that for a log which others have founded, and waits for them for ever.
func (l *Log) unlessHalf(files raft.SnapshotStore) (bool, error) {
	term, err := l.disk.GetUint64([]byte(termKey))
	if err != nil || term != 1 {
		return true, err
	}
	if last, err := l.disk.LastIndex(); err != nil || last > 0 {
		return true, err
	}
	if list, err := files.List(); err != nil || len(list) > 0 {
		return true, err
	}
	return false, l.disk.SetUint64([]byte(termKey), 0)
}

// alone is a group of one.
func alone(id raft.ServerID) raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: id, Address: raft.ServerAddress(id)}}}
}

// Leader returns the node that leads the log, as far as this one knows.
func (l *Log) Leader() (node qpid.NodeID, known bool) {
	if l.group != nil {
		return l.group.leader()
	}
	return l.c.Node, l.leading()
}

// leading reports whether raft has this node lead just now.
func (l *Log) leading() bool { return l.late.err() == nil && l.raft.State() == raft.Leader }

// Ready returns nil if a command is likely to be taken, by this node or by the one
// that leads. The error says what is missing.
func (l *Log) Ready() error {
	if err := l.late.err(); err != nil {
		return err
	}
	if d := l.damage.Load(); d != nil {
		return d
	}
	if u := l.machine.unread.Load(); u != nil {
		return u
	}
	if err := l.disk.Fault(); err != nil {
		if isFull(err) {
			return fmt.Errorf("%w: %s: %w", ErrFull, l.c.Dir, err)
		}
		return fmt.Errorf("the disk of %s fails: %w", l.c.Dir, err)
	}
	if l.group != nil {
		return l.group.ready()
	}
	if !l.leading() {
		return errors.New("the log is just starting")
	}
	return nil
}
