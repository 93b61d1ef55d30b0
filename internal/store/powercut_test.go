package store

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/anteroom/anteroom/eviction"
)

// platter is what a power cut leaves of a directory, at worst: of a file what was synced
// of it, under the names that were synced. Names may be on it sooner than they are synced;
// the bytes of a file that nobody has synced are taken to be lost.
type platter struct {
	t     *testing.T
	dir   string
	names map[string]*inode // as they are
	kept  map[string]*inode // as they were synced
	each  func(leaves map[string]*inode, after string)
}

type inode struct{ synced []byte }

// watch has p stand for the disk of s.
func watch(t *testing.T, s *Store) *platter {
	t.Helper()
	p := &platter{t: t, dir: s.dir, names: map[string]*inode{}, kept: map[string]*inode{}}
	s.disk = disk{p.sync, p.rename}
	return p
}

func (p *platter) sync(f *os.File) error {
	if f.Name() == p.dir {
		p.kept = maps.Clone(p.names)
		p.cut("a sync of names")
		return nil
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	name := filepath.Base(f.Name())
	if p.names[name] == nil {
		p.names[name] = &inode{}
	}
	p.names[name].synced = b
	p.cut("a sync of " + name)
	return nil
}

func (p *platter) rename(from, to string) error {
	i := p.names[filepath.Base(from)]
	if i == nil {
		i = &inode{} // nobody has synced it
	}
	delete(p.names, filepath.Base(from))
	p.names[filepath.Base(to)] = i
	p.cut("a rename to " + filepath.Base(to))
	return os.Rename(from, to)
}

// cut shows each what is there if the power fails now.
func (p *platter) cut(after string) {
	if p.each != nil {
		p.each(p.kept, after+", no name of before the last sync being lost")
		p.each(p.names, after+", all names being there")
	}
}

// store opens a directory that has what a power cut leaves.
func (p *platter) store(leaves map[string]*inode) *Store {
	p.t.Helper()
	s, err := Open(p.t.TempDir())
	for name, i := range leaves {
		if err == nil {
			err = os.WriteFile(s.Path(name), i.synced, 0o600)
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Whenever the power fails, the record that was saved last is there, or the one that was
// about to be; and once Save has returned it is the new one.
func TestARecordThatIsSavedOutlivesAPowerCut(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := watch(t, s)
	epoch := func(leaves map[string]*inode, after string) uint64 {
		r, err := p.store(leaves).Load()
		switch {
		case err != nil:
			t.Errorf("a power cut after %s: %v", after, err)
			return 0
		case r == nil:
			return 0
		}
		return r.Epoch
	}
	for saved := uint64(1); saved < 4; saved++ {
		p.each = func(leaves map[string]*inode, after string) {
			if got := epoch(leaves, after); got != saved && got != saved-1 {
				t.Errorf("record %d, a power cut after %s: record %d is there", saved, after, got)
			}
		}
		if err := s.Save(&eviction.Record{Epoch: saved}); err != nil {
			t.Fatal(err)
		}
		if got := epoch(p.kept, "Save"); got != saved {
			t.Errorf("record %d was saved, and record %d is there after a power cut", saved, got)
		}
	}
}

// So it is with visits, in a file that is added to.
func TestVisitsThatAreAppendedOutliveAPowerCut(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := watch(t, s)
	self := eviction.Member{Name: "n1", Boot: 1}
	v, _, err := s.OpenVisits(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	visits := func(leaves map[string]*inode, after string) (n int) {
		again, kept, err := p.store(leaves).OpenVisits(eviction.Member{Name: "n1", Boot: 2})
		if err != nil {
			t.Fatalf("a power cut after %s: %v", after, err)
		}
		defer func() { _ = again.Close() }()
		for _, r := range kept.Rooms {
			n += len(r.Put)
		}
		return n
	}
	for put := 1; put < 5; put++ {
		if put == 3 { // it is written anew on the way
			v.size, v.base = visitsSpare+1, 0
		}
		p.each = func(leaves map[string]*inode, after string) {
			if got := visits(leaves, after); got != put && got != put-1 {
				t.Errorf("%d visits, a power cut after %s: %d are there", put, after, got)
			}
		}
		line := eviction.VisitLine{ID: [16]byte{byte(put)}, Stamp: uint64(put), Until: 100, Homes: []eviction.Account{{Member: self, Born: 7}}}
		if err := v.Append(&eviction.VisitsBatch{Rooms: []eviction.RoomLines{{Room: "shop", Put: []eviction.VisitLine{line}}}}); err != nil {
			t.Fatal(err)
		}
		if got := visits(p.kept, "Append"); got != put {
			t.Errorf("%d visits were appended, and %d are there after a power cut", put, got)
		}
	}
}
