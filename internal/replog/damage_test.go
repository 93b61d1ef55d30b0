package replog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"github.com/anteroom/anteroom/qpid"
	"github.com/anteroom/anteroom/simtest/queues"
)

// filled is the directory of a log with commands, which ended in good order or is
// as a crash leaves it.
func filled(t testing.TB, c Config, ended bool, commands ...string) string {
	t.Helper()
	r := start(t, c)
	r.put(t, commands...)
	if !ended {
		return copied(t, c.Dir)
	}
	_ = r.stop()
	return c.Dir
}

// segmentsOf are the files of the log in dir, oldest first.
func segmentsOf(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	if err != nil || len(all) == 0 {
		t.Fatalf("segments %v: %v", all, err)
	}
	return all
}

// refused opens the log in dir, which must be refused, and returns the damage.
func refused(t testing.TB, what, dir string) *Damage {
	t.Helper()
	l, err := Open(Config{Dir: dir, Node: "n1", Machine: &list{}, Leads: func(bool) {}})
	if err == nil {
		_ = l.close(new(sync.WaitGroup))
		t.Fatalf("%s: the log starts", what)
	}
	var d *Damage
	if !errors.As(err, &d) {
		t.Fatalf("%s: %v", what, err)
	}
	return d
}

// altered changes a file.
func altered(t testing.TB, name string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	var commands []string
	for i := range 700 { // 14 MiB: four segments
		commands = append(commands, fmt.Sprintf("%04d%s", i, strings.Repeat("x", 20<<10)))
	}
	for _, ended := range []bool{true, false} {
		dir := filled(t, durable(t.TempDir()), ended, commands...)
		segments := segmentsOf(t, dir)
		if len(segments) < 3 {
			t.Fatalf("%d segments", len(segments))
		}
		for _, c := range []struct {
			name    string
			segment int // from the end
			do      func(b []byte) []byte
		}{
			{"a hole in the last segment", 1, func(b []byte) []byte { clear(b[1000:1512]); return b }},
			{"a hole in the first segment", len(segments), func(b []byte) []byte { clear(b[100_000:100_512]); return b }},
			{"no beginning of the last segment", 1, func(b []byte) []byte { clear(b[:32]); return b }},
			{"no beginning of the first segment", len(segments), func(b []byte) []byte { clear(b[:32]); return b }},
			{"the last segment is gone", 1, nil},
			{"the second segment is gone", len(segments) - 1, nil},
			{"the last segment is empty", 1, func([]byte) []byte { return nil }},
			{"the last segment is cut", 1, func(b []byte) []byte { return b[:len(b)/16] }},
			{"a bit of the second segment", len(segments) - 1, func(b []byte) []byte { b[200_000] ^= 4; return b }},
			{"a bit of the last segment", 1, func(b []byte) []byte { b[2000] ^= 4; return b }},
		} {
			at := copied(t, dir)
			name := segmentsOf(t, at)[len(segments)-c.segment]
			if c.do == nil {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			} else {
				altered(t, name, c.do)
			}
			what := fmt.Sprintf("%s (ended: %v)", c.name, ended)
			for range 2 { // and again
				if d := refused(t, what, at); d.First == 0 || d.Last < d.First || d.File != name {
					t.Errorf("%s: %+v", what, d)
				}
			}
		}
	}
}

// Every byte of a small log, of its snapshot and of all that stands beside them is
// changed, one a run. The log is refused, or it has all that was acknowledged.
func TestEachByteOfALogMatters(t *testing.T) {
	t.Parallel()
	plain := durable(t.TempDir())
	plain.segmentSize = 16 << 10
	cut := durable(t.TempDir())
	cut.segmentSize, cut.CompactBytes = 16<<10, 1
	for kind, c := range map[string]Config{"log of a process that was killed": plain, "log and snapshot": cut} {
		want := numbered("c", 12)
		r := start(t, c)
		for _, one := range want {
			r.put(t, one)
			r.disk.witness.tell() // as every 0.1 s: both of its records are there
		}
		if c.CompactBytes == 1 {
			until(t, "there is a snapshot", func() bool {
				first, err := r.disk.FirstIndex()
				return err == nil && first > 5
			})
			_ = r.stop()
		} else {
			c.Dir = copied(t, c.Dir)
		}
		var turned atomic.Int64
		tried := eachByte(t, c.Dir, func(name string, at int) {
			if !flipped(t, c, name, at, want) {
				turned.Add(1)
			}
		})
		kinds := []string{".wal", metaFile, ownerFile, witnessFile}
		if c.CompactBytes == 1 {
			kinds = append(kinds, "state.bin", snapshotMeta, snapshotSum)
		}
		total := 0
		for _, n := range tried {
			total += n
		}
		if n := int(turned.Load()); !sameKinds(tried, kinds) || total < 250 || n < total/3 {
			t.Errorf("%s: bytes of %v, refused %d times", kind, tried, n)
		}
	}
}

// A replica is made anew from the others, or has all that was acknowledged.
func TestEachByteOfAReplicaMatters(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(fast(t), replicatedKind)
	f := &fileDisk{dir: dir, node: "n1", kind: replicatedKind}
	_, err := f.Open()
	for _, c := range numbered("command ", 10) {
		err = errors.Join(err, f.Append([][]byte{[]byte(c)}))
	}
	err = errors.Join(err, f.Compact(7, []byte("a state")))
	var want queues.Content
	group, listed := f.shots.List() // whom the snapshot has for members, too
	if err = errors.Join(err, listed, f.read(&want), f.d.Close(), f.owner.close()); err != nil || want.From != 7 || len(want.Commands) != 3 || len(group) != 1 {
		t.Fatalf("%+v, %+v, %v", want, group, err)
	}
	var anew atomic.Int64
	tried := eachByte(t, dir, func(name string, at int) {
		inner, err := filepath.Rel(dir, name)
		if err != nil {
			t.Error(err)
			return
		}
		hurt := &fileDisk{dir: filepath.Join(fast(t), replicatedKind), node: "n1", kind: replicatedKind}
		if err := os.CopyFS(hurt.dir, os.DirFS(dir)); err != nil {
			t.Error(err)
			return
		}
		altered(t, filepath.Join(hurt.dir, inner), func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
		got, err := hurt.Open()
		switch {
		case err != nil:
			t.Errorf("byte %d of %s turned: %v", at, inner, err)
			return
		case got.Refused != "" && got.From == 0 && len(got.Commands) == 0 && hurt.owner.papers().Lost:
			anew.Add(1)
		case !reflect.DeepEqual(got, want):
			t.Errorf("byte %d of %s turned: %+v", at, inner, got)
		default:
			if is, err := hurt.shots.List(); err != nil || !reflect.DeepEqual(is, group) {
				t.Errorf("byte %d of %s turned: %+v, %v", at, inner, is, err)
			}
		}
		hurt.end()
		_ = os.RemoveAll(filepath.Dir(hurt.dir))
	})
	if !sameKinds(tried, []string{".wal", metaFile, ownerFile, witnessFile, "state.bin", snapshotMeta, snapshotSum}) || anew.Load() < 100 {
		t.Errorf("bytes of %v, made anew %d times", tried, anew.Load())
	}
}

// eachByte calls do for each byte of the files in dir, and some beyond their end if
// zeros follow; several at the same time. It returns how many there were, by file.
func eachByte(t *testing.T, dir string, do func(name string, at int)) map[string]int {
	t.Helper()
	tried := map[string]int{}
	var all errgroup.Group
	all.SetLimit(32) // most of the time is spent waiting for the disk
	step := 1
	if testing.Short() {
		step = 7
	}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == lockFile {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		end := len(b)
		for end > 0 && b[end-1] == 0 {
			end--
		}
		kind := e.Name()
		if filepath.Ext(kind) == ".wal" {
			kind = ".wal"
		}
		for i := 0; i < min(len(b), end+16); i += step {
			tried[kind]++
			all.Go(func() error {
				do(name, i)
				return nil
			})
		}
		return nil
	})
	_ = all.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return tried
}

// sameKinds reports whether bytes of exactly these files were tried.
func sameKinds(tried map[string]int, want []string) bool {
	slices.Sort(want)
	return slices.Equal(slices.Sorted(maps.Keys(tried)), want)
}

// flipped reports whether a log opens although a byte of one of its files is
// another, and fails the test if it has not what it should then.
func flipped(t *testing.T, c Config, name string, at int, want []string) bool {
	t.Helper()
	inner, err := filepath.Rel(c.Dir, name)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(t.TempDir(), "log")
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(c.Dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	altered(t, filepath.Join(dir, inner), func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
	state := &list{}
	l, err := Open(Config{Dir: dir, Node: c.Node, Machine: state, Leads: state.leads, segmentSize: c.segmentSize})
	if err != nil {
		if !errors.As(err, new(*Damage)) {
			t.Errorf("byte %d of %s turned: it does not say what is damaged: %v", at, inner, err)
		}
		return false
	}
	ctx, stop := contextOf(t)
	over := make(chan error, 1)
	go func() { over <- l.Run(ctx) }()
	until(t, fmt.Sprintf("it leads, byte %d of %s turned", at, inner), state.leading)
	stop()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("byte %d of %s turned: Run = %v", at, inner, err)
	}
	if !slices.Equal(state.texts(), want) {
		t.Errorf("byte %d of %s turned: the log has %v", at, inner, state.texts())
	}
	return true
}

// A bit of what was acknowledged last is turned, and the process killed at once.
func TestDamageToTheLastEntryIsNoticed(t *testing.T) {
	t.Parallel()
	r := start(t, durable(t.TempDir()))
	for i := range 20 {
		last := fmt.Sprintf("command %d", i)
		r.put(t, last)
		at := copied(t, r.c.Dir)
		altered(t, segment(t, at), func(b []byte) []byte { b[bytes.Index(b, []byte(last))] ^= 1; return b })
		if d := refused(t, last, at); d.File != segment(t, at) || d.Last == 0 {
			t.Errorf("%s: %+v", last, d)
		}
	}
}

// A log whose end is gone, but for which there is a snapshot, goes on after that.
func TestLogThatEndsBeforeItsSnapshotGoesOn(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	r := start(t, c)
	want := numbered("c", 10)
	for _, one := range want {
		r.put(t, one)
	}
	if err := r.raft.Snapshot().Error(); err != nil { // it is as far as the log is
		t.Fatal(err)
	}
	_ = r.stop()
	half := written(t, c.Dir) / 2
	altered(t, segment(t, c.Dir), func(b []byte) []byte { clear(b[half:]); return b })
	for i := range 2 {
		r = start(t, c)
		r.put(t, fmt.Sprint("next", i))
		want = append(want, fmt.Sprint("next", i))
		equal(t, "after the damage", r.state.texts(), want)
		_ = r.stop()
	}
}

// A witness that was damaged learns at the next start what there is.
func TestWitnessLearnsAtTheStartWhatThereIs(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	r := start(t, c)
	r.put(t, numbered("c", 10)...)
	_ = r.stop()
	altered(t, filepath.Join(c.Dir, witnessFile), func(b []byte) []byte { clear(b); return b })
	f := &fileDisk{dir: c.Dir, node: c.Node, kind: durableKind}
	if err := f.start(false); err != nil { // without raft, which a follower in a group does not have write anything
		t.Fatal(err)
	}
	f.d.witness.tell() // as every 0.1 s
	if err := f.Crash(nil, nil); err != nil {
		t.Fatal(err)
	}
	altered(t, segment(t, c.Dir), func(b []byte) []byte { clear(b[64:]); return b })
	if d := refused(t, "a log without its end", c.Dir); d.Last == 0 {
		t.Errorf("refused for %+v", d)
	}
}

func TestLogWithoutItsSnapshotIsGivenUpAsAWhole(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	c.CompactBytes = 1
	r := start(t, c)
	r.put(t, numbered("c", 10)...)
	until(t, "there is a snapshot", func() bool {
		first, err := r.disk.FirstIndex()
		return err == nil && first > 2
	})
	_ = r.stop()
	states, _ := filepath.Glob(filepath.Join(c.Dir, "snapshots", "*", "state.bin"))
	if len(states) != 1 {
		t.Fatal(states)
	}
	altered(t, states[0], func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	if d := refused(t, "a bit of the snapshot", c.Dir); d.File != states[0] {
		t.Errorf("refused for %+v", d)
	}
	loss, err := Recover(c.Dir, "")
	if err != nil || loss.Kept != 0 || loss.Aside == "" {
		t.Fatalf("Recover = %+v, %v", loss, err)
	}
	r = start(t, c)
	r.put(t, "new")
	equal(t, "after all was given up", r.state.texts(), []string{"new"})
}

// A directory that is gone as a whole, as one whose disk was not mounted is, is not
// taken for that of a new node.
func TestDirectoryThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	c := durable(filepath.Join(at, "queues", durableKind))
	c.Note = filepath.Join(at, "queues-durable")
	r := start(t, c)
	r.put(t, "c")
	_ = r.stop()
	whole := copied(t, c.Dir)
	for what, do := range map[string]func() error{
		"the directory":         func() error { return os.RemoveAll(c.Dir) },
		"the one around it":     func() error { return os.RemoveAll(filepath.Dir(c.Dir)) },
		"all that is inside it": func() error { return errors.Join(os.RemoveAll(c.Dir), os.MkdirAll(c.Dir, 0o700)) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		var d *Damage
		if _, err := Open(c); !errors.As(err, &d) || d.File != c.Dir || !strings.Contains(err.Error(), "recover --data "+at+" --accept-loss") {
			t.Errorf("without %s: %v", what, err)
		}
		if seen, err := Verify(c.Dir, c.Note); err != nil || seen.Damage == nil || seen.Damage.File != c.Dir {
			t.Errorf("without %s: Verify = %+v, %v", what, seen, err)
		}
	}
	if err := os.CopyFS(c.Dir, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	r = start(t, c)
	until(t, "it leads", r.state.leading)
	equal(t, "brought back", r.state.texts(), []string{"c"})
	_ = r.stop()
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	if loss, err := Recover(c.Dir, c.Note); err != nil || loss.Damage == nil || loss.Kept != 0 {
		t.Errorf("Recover = %+v, %v", loss, err)
	}
	r = start(t, c)
	r.put(t, "new")
	equal(t, "after all was given up", r.state.texts(), []string{"new"})
	_ = r.stop()
}

// A member whose disk is damaged makes its copy anew, and no acknowledged command
// is lost by it, whichever file it was.
func TestDamagedMemberIsMadeAnewFromTheOthers(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	for _, name := range []qpid.NodeID{"n1", "n2", "n3"} {
		m.start(slowly(member(name)))
	}
	m.see()
	m.voters("n1", "n2", "n3")
	want := numbered("c", 20)
	for _, c := range want {
		m.put(c)
	}
	boot := uint64(1)
	for i, hurt := range []func(dir string){
		func(dir string) {
			altered(t, segment(t, dir), func(b []byte) []byte { clear(b[600:1112]); return b })
		},
		func(dir string) {
			altered(t, filepath.Join(dir, ownerFile), func(b []byte) []byte { b[20] ^= 1; return b })
		},
		func(dir string) {
			altered(t, filepath.Join(dir, "log", metaFile), func(b []byte) []byte { b[30] ^= 1; return b })
		},
		func(dir string) {
			if err := os.Remove(filepath.Join(dir, ownerFile)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		name := []qpid.NodeID{"n3", "n1", "n2", "n3"}[i]
		m.stop(name)
		m.see()
		hurt(filepath.Join(m.dir, string(name)))
		boot++
		c := slowly(member(name))
		c.Group.Self.Boot = boot
		m.start(c)
		m.see()
		if _, err := os.Stat(filepath.Join(m.dir, fmt.Sprintf("%s.damaged-%d", name, 1+i/3))); err != nil {
			t.Errorf("the damaged files: %v", err)
		}
		until(t, "the new directory has the old one's vote", func() bool {
			servers := m.leader().raft.GetConfiguration().Configuration().Servers
			id := serverOf(name, m.nodes[name].owner.papers().Disk)
			return len(servers) == 3 && slices.Contains(servers, raft.Server{ID: id, Address: raft.ServerAddress(id), Suffrage: raft.Voter})
		})
		m.put(fmt.Sprint("after ", i))
		want = append(want, fmt.Sprint("after ", i))
		equal(t, "applied", distinct(m.same()), want)
	}
}

// If all members' disks are damaged there is nobody to copy from, and no new group
// that knows nothing takes the old one's place.
func TestNobodyFoundsAnewAfterDamage(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.stores = nil
	names := []qpid.NodeID{"n1", "n2", "n3"}
	for _, name := range names {
		m.start(member(name))
	}
	m.see()
	m.voters(names...)
	m.put("c")
	for _, name := range names {
		m.stop(name)
	}
	for _, name := range names {
		altered(t, filepath.Join(m.dir, string(name), "log", metaFile), func(b []byte) []byte { b[30] ^= 1; return b })
		c := member(name)
		c.Group.Self.Boot = 2
		m.start(c)
	}
	m.see()
	for _, name := range names {
		n := m.nodes[name]
		until(t, "it says what it waits for", func() bool {
			err := n.Ready()
			return err != nil && strings.Contains(err.Error(), "was damaged and was set aside")
		})
	}
}

func TestWitnessNeverSaysMoreThanTheLogHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := openWitness(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.saw(7)
	w.tell()
	w.saw(9)
	if err := w.back(5); err != nil { // the entries are about to be removed
		t.Fatal(err)
	}
	again, err := openWitness(dir) // as after a crash
	if err != nil || again.acked != 5 {
		t.Fatalf("after the log was cut: %d, %v", again.acked, err)
	}
	_ = again.f.Close()
	w.saw(6)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for at := range witnessLen { // either record does
		for _, record := range []int{0, witnessApart} {
			altered(t, filepath.Join(dir, witnessFile), func(b []byte) []byte { b[record+at] ^= 1; return b })
			again, err := openWitness(dir)
			if err != nil || again.acked != 6 {
				t.Fatalf("byte %d turned: %d, %v", record+at, again.acked, err)
			}
			_ = again.f.Close()
			altered(t, filepath.Join(dir, witnessFile), func(b []byte) []byte { b[record+at] ^= 1; return b })
		}
	}
}

func TestDamageIsFoundWhileTheLogRuns(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	c.ScrubEvery = 20 * time.Millisecond
	r := start(t, c)
	r.put(t, numbered("c", 50)...)
	time.Sleep(3 * c.ScrubEvery)
	if err := r.Ready(); err != nil {
		t.Fatalf("Ready = %v", err)
	}
	f, err := os.OpenFile(segment(t, c.Dir), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 64), 300); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	until(t, "the damage is found", func() bool {
		var d *Damage
		return errors.As(r.Ready(), &d) && d.File == segment(t, c.Dir) && d.First > 0
	})
}
