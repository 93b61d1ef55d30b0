package replog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/anteroom/anteroom/simtest/queues"
)

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
