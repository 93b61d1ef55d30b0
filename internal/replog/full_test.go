package replog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"github.com/anteroom/anteroom/qpid"
)

// smallDisk is where the files of a log are. While full is set it makes no file,
// and leaves an empty one behind as the system does; while torn is, half of what is
// to be written is; and while lazy is, all is written and nobody is told.
type smallDisk struct {
	types.VFS
	full, torn, lazy atomic.Bool
}

func newSmallDisk() *smallDisk { return &smallDisk{VFS: walfs.New()} }

func (d *smallDisk) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if d.full.Load() {
		return nil, errors.Join(os.WriteFile(filepath.Join(dir, name), nil, 0o600), syscall.ENOSPC)
	}
	return d.writable(d.VFS.Create(dir, name, size))
}

func (d *smallDisk) OpenWriter(dir, name string) (types.WritableFile, error) {
	return d.writable(d.VFS.OpenWriter(dir, name))
}

func (d *smallDisk) writable(f types.WritableFile, err error) (types.WritableFile, error) {
	if err != nil {
		return nil, err
	}
	return smallFile{f, d}, nil
}

type smallFile struct {
	types.WritableFile
	disk *smallDisk
}

func (f smallFile) WriteAt(b []byte, at int64) (int, error) {
	if f.disk.torn.Load() {
		n, err := f.WritableFile.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return f.WritableFile.WriteAt(b, at)
}

func (f smallFile) Sync() error {
	err := f.WritableFile.Sync()
	if f.disk.lazy.Load() {
		return syscall.ENOSPC
	}
	return err
}

func onSmallDisk(c Config) (Config, *smallDisk) {
	d := newSmallDisk()
	c.on, c.segmentSize = d, 64<<10
	return c, d
}

// big is a command of which a file of a small disk takes six.
func big(prefix string, i int) string {
	return fmt.Sprintf("%s%04d%s", prefix, i, strings.Repeat("x", 10<<10))
}

func TestDurableLogOnAFullDiskSaysSoAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"no next file", "half a write", "a write that fails and is there"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			c, d := onSmallDisk(durable(t.TempDir()))
			r := start(t, c)
			set := map[string]*atomic.Bool{"no next file": &d.full, "half a write": &d.torn, "a write that fails and is there": &d.lazy}[fault]
			var acknowledged []string
			unsure := map[string]bool{}
			for round := range 4 {
				for i := range 7 {
					acknowledged = append(acknowledged, big(fmt.Sprintf("good%d.", round), i))
					r.put(t, acknowledged[len(acknowledged)-1])
				}
				set.Store(true)
				acknowledged = append(acknowledged, untilFull(t, r, round, unsure)...)
				if a := <-r.propose("refused"); !errors.Is(a.err, ErrRefused) || !errors.Is(a.err, ErrFull) || !strings.Contains(a.err.Error(), c.Dir) {
					t.Fatalf("propose = %v", a.err)
				}
				if room, err := r.Room(); room != RoomForNone || !errors.Is(err, ErrFull) || !r.Storage().Full || !errors.Is(r.Ready(), ErrFull) {
					t.Errorf("room %v %v, storage %+v, ready %v", room, err, r.Storage(), r.Ready())
				}
				if !r.state.leading() {
					t.Error("what it has is not to be had")
				}
				checkAcknowledged(t, "crashed while full", copied(t, c.Dir), acknowledged, unsure)
				set.Store(false)
				until(t, "there is room again", func() bool { room, _ := r.Room(); return room == RoomForAll && r.Ready() == nil })
			}
			checkTexts(t, "running", r.state.texts(), acknowledged, unsure)
			checkAcknowledged(t, "crashed", copied(t, c.Dir), acknowledged, unsure)
			_ = r.stop()
			checkAcknowledged(t, "ended", c.Dir, acknowledged, unsure)
		})
	}
}

// untilFull proposes until a command fails, and returns those that did not.
func untilFull(t *testing.T, r *running, round int, unsure map[string]bool) (acknowledged []string) {
	t.Helper()
	until(t, "it leads", r.state.leading)
	for i := 0; ; i++ {
		command := big(fmt.Sprintf("last%d.", round), i)
		switch a := <-r.propose(command); {
		case a.err == nil && i < 100:
			acknowledged = append(acknowledged, command)
		case errors.Is(a.err, ErrFull):
			unsure[command] = !errors.Is(a.err, ErrRefused)
			return acknowledged
		default:
			t.Fatalf("propose %d = %v", i, a.err)
		}
	}
}

// checkAcknowledged starts the log in dir, which must have all that was
// acknowledged, nothing that was not proposed, and take more.
func checkAcknowledged(t *testing.T, what, dir string, acknowledged []string, unsure map[string]bool) {
	t.Helper()
	r := start(t, durable(dir))
	r.put(t, "more", big("more", 1))
	checkTexts(t, what, r.state.texts(), append(acknowledged[:len(acknowledged):len(acknowledged)], "more", big("more", 1)), unsure)
	_ = r.stop()
}

func checkTexts(t *testing.T, what string, got, want []string, unsure map[string]bool) {
	t.Helper()
	var sure []string
	for _, c := range got {
		if !unsure[c] {
			sure = append(sure, c)
		}
	}
	equal(t, what, sure, want)
}

// A library that ends after it has filled a file, and before it has made the next
// one, would never write again.
func TestLogThatEndedWithAFullFileGoesOn(t *testing.T) {
	t.Parallel()
	crashed, all := endedFull(t)
	checkAcknowledged(t, "with a full last file", crashed, all, map[string]bool{})
}

// endedFull is the directory of a log that ended between the two, and what it has.
func endedFull(t *testing.T) (dir string, all []string) {
	t.Helper()
	c, d := onSmallDisk(durable(t.TempDir()))
	r := start(t, c)
	r.put(t, "first")
	before, err := os.ReadFile(filepath.Join(c.Dir, "log", metaFile))
	if err != nil {
		t.Fatal(err)
	}
	d.full.Store(true)
	all = append([]string{"first"}, untilFull(t, r, 0, map[string]bool{})...)
	if len(all) < 4 {
		t.Fatalf("%d commands fit", len(all))
	}
	dir = copied(t, c.Dir)
	_ = r.stop()
	for _, name := range segmentsOf(t, dir)[1:] {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	altered(t, filepath.Join(dir, "log", metaFile), func([]byte) []byte { return before })
	return dir, all
}

// What stands at the end of a file that is full is an index. If it is torn,
// nothing that was written with it was acknowledged.
func TestTornIndexIsCutOff(t *testing.T) {
	t.Parallel()
	for cutAt := range 12 {
		crashed, all := endedFull(t)
		last := segmentsOf(t, crashed)[0]
		altered(t, last, func(b []byte) []byte { return tornIndex(b, cutAt) })
		after, err := Open(Config{Dir: crashed, Node: "n1", Machine: &list{}, Leads: func(bool) {}})
		if d := (*Damage)(nil); errors.As(err, &d) && d.Last >= d.First && d.First > 0 {
			continue // the witness knows that it was acknowledged
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", cutAt, err)
		}
		_ = after.close(new(sync.WaitGroup))
		checkAcknowledged(t, fmt.Sprintf("cut at %d", cutAt), crashed, all[:len(all)-1], map[string]bool{all[len(all)-1]: true})
	}
}

// tornIndex is a file whose end was not written.
func tornIndex(b []byte, cutAt int) []byte {
	end := len(b)
	for end > 0 && b[end-1] == 0 {
		end--
	}
	clear(b[end-4*cutAt-1:])
	return b
}

// onDisks is three members with files of their own.
func onDisks(t *testing.T) (*mesh, map[qpid.NodeID]*smallDisk) {
	t.Helper()
	m := newMesh(t)
	m.stores = nil
	disks := map[qpid.NodeID]*smallDisk{}
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		var c Config
		c, disks[name] = onSmallDisk(slowly(member(name)))
		m.start(c)
	}
	m.see()
	m.voters("n1", "n2", "n3")
	return m, disks
}

// Whoever it is whose disk is full, the others go on, and it catches up by itself.
func TestReplicaWhoseDiskWasFullComesBack(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"a follower", "the leader"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			m, disks := onDisks(t)
			m.put("first")
			full := m.leader().name
			if who == "a follower" {
				leads := full
				for name := range disks {
					if name != leads {
						full = name
					}
				}
			}
			disks[full].full.Store(true)
			want := []string{"first"}
			for i := range 20 {
				want = append(want, big("", i))
				m.put(want[len(want)-1])
			}
			until(t, "the full one says so", func() bool { return m.node(full).Storage().Full })
			disks[full].full.Store(false)
			m.put("last")
			equal(t, "applied", distinct(m.same()), append(want, "last"))
			until(t, "it has room", func() bool { return !m.node(full).Storage().Full && m.node(full).Ready() == nil })
		})
	}
}

// With room on fewer disks than it takes, commands are refused at once. Who leads may
// change meanwhile, also to one that is full: it steps down when it is to write.
func TestGroupWithTooFewDisksSaysThatTheyAreFull(t *testing.T) {
	t.Parallel()
	m, disks := onDisks(t)
	m.put("first")
	roomy := m.leader().name
	for name, d := range disks {
		d.full.Store(name != roomy)
	}
	acknowledged, unsure := []string{"first"}, map[string]bool{}
	said := func(name qpid.NodeID) bool {
		command := big("", len(acknowledged)+len(unsure))
		select {
		case a := <-m.node(name).propose(command):
			switch {
			case a.err == nil:
				acknowledged = append(acknowledged, command)
			case !errors.Is(a.err, ErrRefused):
				unsure[command] = true // it may come yet
			default:
				return name == roomy && errors.Is(a.err, ErrFull)
			}
		case <-time.After(patience):
			t.Fatalf("%s does not say whether it took a command", name)
		}
		return false
	}
	until(t, "who has room says that the others have none", func() bool { return slices.ContainsFunc(m.up(), said) })
	for _, d := range disks {
		d.full.Store(false)
	}
	m.put("last")
	checkTexts(t, "applied", distinct(m.same()), append(acknowledged, "last"), unsure)
}

// A follower that has cut its log back must not fail at what should follow: raft
// would think ever after that what was cut is there.
func TestLogThatWasCutBackWaitsForRoom(t *testing.T) {
	t.Parallel()
	c, d := onSmallDisk(durable(t.TempDir()))
	r := start(t, c)
	r.put(t, numbered("a", 10)...)
	last, err := r.disk.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.disk.DeleteRange(last, last); err != nil {
		t.Fatal(err)
	}
	d.torn.Store(true)
	stored := make(chan error, 1)
	go func() { stored <- r.disk.StoreLog(&raft.Log{Index: last, Term: 9, Data: []byte{entryVersion}}) }()
	until(t, "there is no room", func() bool { return r.Storage().Full })
	d.torn.Store(false)
	if err := <-stored; err != nil {
		t.Errorf("StoreLog = %v", err)
	}
}

func TestSpaceIsWarnedOfBeforeThereIsNone(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 40)
	c := durable(t.TempDir())
	c.space = func(string) (uint64, uint64, error) { return free.Load(), 1 << 41, nil }
	r := start(t, c)
	r.put(t, "a")
	for _, step := range []struct {
		free      uint64
		low, full bool
		room      Room
	}{
		{1 << 40, false, false, RoomForAll},
		{warnTimes*reserveLeast - 1, true, false, RoomForAll},
		{reserveLeast - 1, true, true, RoomToRemove},
		{reserveLeast + 1, true, true, RoomToRemove}, // not to and fro
		{reserveLeast * 2, true, false, RoomForAll},
		{1 << 40, false, false, RoomForAll},
	} {
		free.Store(step.free)
		until(t, fmt.Sprintf("%+v", step), func() bool {
			s := r.Storage()
			room, err := r.Room()
			return s.Free == step.free && s.Low == step.low && s.Full == step.full && room == step.room && (err == nil) == (room == RoomForAll)
		})
	}
	r.put(t, "b") // what the log is given it takes, as long as it can
}

// What is put in faster than anybody looks at the disk does not take the room that is kept
// for what makes room again: an acknowledgement and a snapshot have it still.
func TestARushOfCommandsLeavesTheRoomThatIsKept(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	state := &list{}
	const spare = 4 << 20 // beside what is kept at first; a snapshot has half of it
	c.space = func(string) (uint64, uint64, error) { return reserveLeast + spare - uint64(state.Size()), 1 << 41, nil }
	c.Machine = state
	r := start(t, c)
	until(t, "it leads", r.state.leading)
	var hands sync.WaitGroup
	var full atomic.Uint64
	for i := range 1000 {
		hands.Add(1)
		r.Propose([]byte(big("rush", i)), true, func(_ []byte, err error) {
			if errors.Is(err, ErrFull) && errors.Is(err, ErrRefused) {
				full.Add(1)
			} else if err != nil {
				t.Errorf("propose = %v", err)
			}
			hands.Done()
		})
	}
	hands.Wait()
	// What was begun when it was looked last is in, and so are the entries that had not been applied then: those under way
	// and the one that is waited for. An entry may be larger than entryMax by a command.
	entry := int64(entryMax + len(big("rush", 0)))
	if n := state.Size(); n > spare/2+lookBytes+entry+(underWay+1)*entry || full.Load() == 0 {
		t.Errorf("%d bytes were taken where there was room for %d, and %d commands refused", n, spare/2, full.Load())
	}
	done := make(chan error, 1)
	r.Propose([]byte("ack"), false, func(_ []byte, err error) { done <- err })
	if err := <-done; err != nil {
		t.Errorf("what makes room = %v", err)
	}
}
