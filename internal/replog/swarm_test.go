package replog

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/qpid"
	"github.com/anteroom/anteroom/simtest/queues"
)

var (
	swarmSeed  = flag.Uint64("seed", 0, "run this seed of the swarm only, and log all that happens")
	swarmSeeds = flag.Int("seeds", 10, "run so many seeds of the swarm")
)

// The swarm of the queues, with logs in files as production has them, which power cuts
// tear, which are damaged while they lie, and for which there is no room at times: what was acknowledged is there, or the log is refused.
// One seed is one run, but for the times and names in the files.
func TestSwarmOnDisksThatTearFlipAndFill(t *testing.T) {
	t.Parallel()
	if *swarmSeed != 0 {
		t.Logf("%+v", swarmOnDisks(t, *swarmSeed))
		return
	}
	seeds := *swarmSeeds
	if testing.Short() {
		seeds = min(seeds, 3)
	}
	var all queues.DiskReached
	for seed := range uint64(seeds) {
		d := swarmOnDisks(t, seed+1)
		to, add := reflect.ValueOf(&all).Elem(), reflect.ValueOf(d)
		for i := range to.NumField() {
			to.Field(i).SetInt(to.Field(i).Int() + add.Field(i).Int())
		}
	}
	t.Logf("%d seeds: %+v", seeds, all)
	if all.Torn == 0 || all.Hurt == 0 || all.Found == 0 || all.Compacted == 0 || all.Filled == 0 || all.Overflown == 0 {
		t.Errorf("the swarm came to %+v", all)
	}
}

func swarmOnDisks(t *testing.T, seed uint64) queues.DiskReached {
	t.Helper()
	dir := fast(t)
	var open []*fileDisk
	o := queues.Draw(seed)
	o.Calm, o.Every, o.Loses = false, min(o.Every, 700_000), seed%3 > 0 // of those that only tear none may be refused
	o.Fills = o.Fills || seed%2 == 0
	o.Disk = func(node string, k broker.Kind) queues.Disk {
		f := &fileDisk{dir: filepath.Join(dir, fmt.Sprint(seed), node, k.String()), node: qpid.NodeID(node), kind: k.String()}
		open = append(open, f)
		return f
	}
	if *swarmSeed != 0 {
		o.Log = func(line string) { t.Log(line) }
	}
	w := queues.New(o)
	err := w.Run()
	for _, f := range open {
		f.end()
	}
	if err != nil {
		o.Disk, o.Log = nil, nil
		t.Fatalf("seed %d: %v\n%+v\nrepeat it with: go test ./internal/replog -run TestSwarmOnDisksThatTearFlipAndFill -seed=%d -v", seed, err, o, seed)
	}
	return w.Disks
}

// fast is a directory that no fsync makes wait, if there is one.
func fast(t testing.TB) string {
	const inMemory = "/dev/shm"
	if s, err := os.Stat(inMemory); err != nil || !s.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(inMemory, "anteroom-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// fileDisk is the files of a log, of which each entry is one command.
type fileDisk struct {
	dir, kind string
	node      qpid.NodeID
	power     *power
	owner     *owner
	shots     *snapshots
	d         *disk
	last      uint64
}

var _ queues.Disk = (*fileDisk)(nil)

// start opens the files as Log.open does.
func (f *fileDisk) start(lost bool) error {
	f.power = &power{VFS: walfs.New(), left: -1}
	o, err := openOwner(f.dir, f.node, f.kind, lost)
	if err != nil {
		return err
	}
	shots, err := openSnapshots(f.dir, hclog.NewNullLogger())
	if err == nil {
		err = shots.sweep()
	}
	var d *disk
	if err == nil {
		d, err = openDisk(f.dir, logFiles{16 << 10, f.power}, o, shots, hclog.NewNullLogger())
	}
	if err == nil {
		if err = d.dropCovered(shots); err == nil {
			err = o.matches(d)
		}
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}
	if err != nil {
		_ = o.close()
		return err
	}
	f.owner, f.shots, f.d = o, shots, d
	return nil
}

func (f *fileDisk) Open() (c queues.Content, err error) {
	err = f.start(false)
	kept := uint64(1<<64 - 1)
	if found := (*Damage)(nil); errors.As(err, &found) {
		if c.Refused = found.Error(); !strings.HasPrefix(found.File, f.dir) {
			return c, fmt.Errorf("it does not say which file it is: %w", found)
		}
		if kept, err = f.giveUp(); err == nil {
			err = f.start(f.kind == "replicated")
		}
	}
	if err != nil {
		return c, err
	}
	if err := f.read(&c); err != nil {
		return c, err
	}
	if f.last = uint64(c.From + len(c.Commands)); c.Refused != "" && f.last != kept {
		return c, fmt.Errorf("%s; it was to keep entries up to %d, and has %d", c.Refused, kept, f.last)
	}
	return c, nil
}

// giveUp is what the operator does, or the node itself with a copy of a replicated log.
func (f *fileDisk) giveUp() (kept uint64, err error) {
	if f.kind == "replicated" {
		_, err := setAside(f.dir)
		return 0, err
	}
	l, err := Recover(f.dir, "")
	return l.Kept, err
}

func (f *fileDisk) read(c *queues.Content) error {
	upTo, err := f.shots.last()
	if err != nil {
		return err
	}
	if c.From = int(upTo); upTo > 0 {
		list, err := f.shots.List()
		if err != nil {
			return err
		}
		_, state, err := f.shots.Open(list[0].ID)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(state)
		if err = errors.Join(err, state.Close()); err != nil {
			return err
		}
		c.Snapshot = text[9:] // after version and size
	}
	last, err := f.d.LastIndex()
	if err != nil {
		return err
	}
	for i := upTo + 1; i <= last; i++ {
		var l raft.Log
		if err := f.d.GetLog(i, &l); err != nil {
			return err
		}
		if err := applicable(&l); err != nil {
			return err
		}
		commands, err := commandsOf(l.Data)
		if err != nil || len(commands) != 1 {
			return fmt.Errorf("entry %d has %d commands: %w", i, len(commands), err)
		}
		c.Commands = append(c.Commands, commands[0])
	}
	return nil
}

func (f *fileDisk) entry(i int, command []byte) *raft.Log {
	l := proposed(appendCommand(nil, command))
	l.Index, l.Term = f.last+1+uint64(i), 1
	return &l
}

func (f *fileDisk) Append(commands [][]byte) error {
	var all []*raft.Log
	for i, c := range commands {
		all = append(all, f.entry(i, c))
	}
	err := f.d.entries.StoreLogs(all)
	if isFull(err) && f.power.isFull() {
		f.power.makeRoom()
		err = f.d.entries.StoreLogs(all)
	}
	if err != nil {
		return err
	}
	f.last += uint64(len(commands))
	return nil
}

func (f *fileDisk) Fill(r *rand.Rand) { f.power.fill(r, 1+r.IntN(fills)) }

func (f *fileDisk) Overflow(r *rand.Rand, command []byte) error {
	f.power.fill(r, 1+r.IntN(noFile-1))
	defer f.power.makeRoom()
	if err := f.d.entries.StoreLogs([]*raft.Log{f.entry(0, command)}); !isFull(err) {
		return fmt.Errorf("an entry for which there is no room: %w", err)
	}
	return nil
}

func (f *fileDisk) Compact(upTo int, state []byte) error {
	id := serverOf(f.node, f.owner.papers().Disk)
	_, t := raft.NewInmemTransport(raft.ServerAddress(id))
	sink, err := f.shots.Create(1, uint64(upTo), 1, alone(id), 1, t)
	if err != nil {
		return err
	}
	if err := snapshot(state).Persist(sink); err != nil {
		return err
	}
	first, err := f.d.FirstIndex()
	if err != nil || upTo < 3 || first > uint64(upTo)-2 {
		return err
	}
	return f.d.DeleteRange(first, uint64(upTo)-2)
}

func (f *fileDisk) Tell() int {
	f.d.witness.tell()
	return int(f.d.witness.told)
}

// Crash writes a command, cuts the power in the middle and leaves the files as they are.
func (f *fileDisk) Crash(r *rand.Rand, writing []byte) error {
	if writing != nil {
		f.power.cut(r, r.IntN(3))
		_ = f.d.entries.StoreLogs([]*raft.Log{f.entry(0, writing)})
	}
	f.power.out()
	w := f.d.entries.(*watched)
	if w.w.loose && r.IntN(2) == 0 { // what it says of late was not synced
		if _, err := w.w.f.WriteAt(make([]byte, witnessLen), int64(w.w.turn%2)*witnessApart); err != nil {
			return err
		}
	}
	return errors.Join(w.w.f.Close(), w.entries.Close(), f.owner.close())
}

// end closes what is open when the run is over.
func (f *fileDisk) end() {
	if f.d != nil {
		w := f.d.entries.(*watched)
		_, _, _ = w.w.f.Close(), w.entries.Close(), f.owner.close() // or it is crashed
	}
}

// Damage turns a bit, or loses a sector, a half or all of a file.
func (f *fileDisk) Damage(r *rand.Rand) (string, error) {
	var names []string
	err := filepath.WalkDir(f.dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != lockFile {
			names = append(names, name)
			if strings.HasSuffix(name, ".wal") {
				names = append(names, name, name)
			}
		}
		return err
	})
	if err != nil {
		return "", err
	}
	name := names[r.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("a bit of %s turned", name)
	at := 0
	if used := len(strings.TrimRight(string(b), "\x00")); used > 0 {
		at = r.IntN(used)
	}
	sector := b[at/512*512 : min(len(b), at/512*512+512)]
	switch kind := r.IntN(8); {
	case kind == 0:
		return name + " removed", os.Remove(name)
	case kind == 1:
		what, b = fmt.Sprintf("%s cut at %d", name, at), b[:at]
	case kind == 2:
		what = fmt.Sprintf("zeros at %d of %s", at, name)
		clear(sector)
	case kind == 3:
		what = fmt.Sprintf("something at %d of %s", at, name)
		for i := range sector {
			sector[i] = byte(r.Uint32())
		}
	case len(b) > 0:
		what = fmt.Sprintf("a bit at %d of %s turned", at, name)
		b[at] ^= 1 << r.IntN(8)
	}
	return what, os.WriteFile(name, b, 0o600)
}

// power is a file system whose power goes in the middle of a write: some of its
// sectors are there, and nothing happens any more. It may also be full.
type power struct {
	types.VFS
	mu   sync.Mutex
	r    *rand.Rand
	left int // writes until it goes; below 0: it stays
	off  bool
	full int // how, 0: it is not
}

// The ways in which it is full.
const (
	noWrite   = 1 + iota // nothing is written
	halfWrite            // some of it
	noSync               // all of it, and the system finds out later that there is no room
	noFile               // what is there takes more, and no file is made
	fills     = noFile
)

func (p *power) fill(r *rand.Rand, how int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r, p.full = r, how
}

func (p *power) makeRoom() { p.fill(p.r, 0) }

func (p *power) isFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.full != 0
}

// takesFile returns an error where there is no room for a file, of which an empty one
// is left behind as the system does.
func (p *power) takesFile(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full == 0 {
		return nil
	}
	return errors.Join(os.WriteFile(name, nil, 0o600), syscall.ENOSPC)
}

var errPower = errors.New("the power is off")

// cut has the power go in so many writes.
func (p *power) cut(r *rand.Rand, in int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r, p.left = r, in
}

func (p *power) out() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
}

func (p *power) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return errPower
	}
	return nil
}

func (p *power) ListDir(dir string) ([]string, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.VFS.ListDir(dir)
}

func (p *power) Delete(dir, name string) error {
	if err := p.err(); err != nil {
		return err
	}
	return p.VFS.Delete(dir, name)
}

func (p *power) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	if err := p.takesFile(filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	f, err := p.VFS.Create(dir, name, size)
	return &powered{f, p}, err
}

func (p *power) OpenReader(dir, name string) (types.ReadableFile, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.VFS.OpenReader(dir, name)
}

func (p *power) OpenWriter(dir, name string) (types.WritableFile, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	f, err := p.VFS.OpenWriter(dir, name)
	return &powered{f, p}, err
}

// powered is a file that is written to.
type powered struct {
	types.WritableFile
	p *power
}

// Sync is left out: what is written stays.
func (f *powered) Sync() error {
	err := f.p.err()
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if err == nil && f.p.full == noSync {
		err = syscall.ENOSPC
	}
	return err
}

func (f *powered) WriteAt(b []byte, at int64) (int, error) {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.off:
		return 0, errPower
	case p.full == noWrite:
		return 0, syscall.ENOSPC
	case p.full == halfWrite:
		n, err := f.WritableFile.WriteAt(b[:p.r.IntN(len(b))], at)
		return n, errors.Join(err, syscall.ENOSPC)
	case p.left != 0:
		p.left--
		return f.WritableFile.WriteAt(b, at)
	}
	p.off = true
	const sectorLen = 512
	for from := 0; from < len(b); {
		end := min(len(b), from+sectorLen-int(at+int64(from))%sectorLen)
		if p.r.IntN(2) == 0 {
			if _, err := f.WritableFile.WriteAt(b[from:end], at+int64(from)); err != nil {
				return 0, err
			}
		}
		from = end
	}
	return 0, errPower
}
