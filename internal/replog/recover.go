package replog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	walsegment "github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Report is what Verify found in a directory.
type Report struct {
	Node, Kind  string
	First, Last uint64 // entries of the log; 0 and 0: none
	Snapshot    uint64 // the last entry that the snapshot has; 0: there is none
	Running     bool   // a node uses it just now
	Damage      *Damage
}

// Verify reads all of a directory, whether a log runs there or not, and changes
// nothing. There is a note of the log, or it is empty.
func Verify(dir, note string) (Report, error) {
	if gone := Gone(dir, note); gone != nil {
		return Report{Kind: filepath.Base(dir), Damage: gone}, nil
	}
	o, err := lookAt(dir)
	if errors.Is(err, errUsed) {
		var p papers
		if _, err := readSealed(filepath.Join(dir, ownerFile), &p); err != nil {
			return reported(p, err)
		}
		return verifyRunning(dir, p)
	}
	if d := (*Damage)(nil); errors.As(err, &d) {
		return Report{Kind: filepath.Base(dir), Damage: d}, nil
	}
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = o.close() }()
	return verify(dir, o)
}

// lookAt opens the papers of a directory that there is.
func lookAt(dir string) (*owner, error) {
	var p papers
	f := filepath.Join(dir, ownerFile)
	if _, err := os.Stat(f); err != nil {
		if hasLog(dir) {
			return nil, damaged(f, "it is missing")
		}
		return nil, fmt.Errorf("%s is no directory of queues (it has no file %s): name one, as in DATA/queues/durable", dir, ownerFile)
	}
	if _, err := readSealed(f, &p); err != nil {
		return nil, err
	}
	return openOwner(dir, p.Node, p.Kind, false)
}

func verify(dir string, o *owner) (Report, error) {
	p := o.papers()
	r := Report{Node: string(p.Node), Kind: p.Kind}
	shots, err := openSnapshots(dir, hclog.NewNullLogger())
	if err != nil {
		return r, err
	}
	d, err := openDisk(dir, logFiles{size: segmentDefault}, o, shots, hclog.NewNullLogger())
	if err == nil {
		var mark []byte
		if mark, err = d.Get([]byte(markKey)); err == nil {
			err = o.fits(mark)
		}
		r.First, _ = d.FirstIndex()
		r.Last, _ = d.LastIndex()
		upTo, failed := shots.last()
		r.Snapshot, err = upTo, errors.Join(err, failed, shots.readable(), d.Close())
	}
	if errors.As(err, &r.Damage) {
		err = nil
	}
	return r, err
}

var errReplicated = errors.New("this is the log of replicated queues: start the node, and it makes its copy anew from the other replicas; " +
	"where the disks of most of them are gone for good, recover the best copy that is left with --last-replica")

// Loss is what Recover left behind.
type Loss struct {
	Report
	Kept  uint64 // the last entry of what is left; 0: nothing
	Aside string // where the damaged files are now
}

// Recover gives up what is lost of a durable log in which none runs: it keeps the
// entries before the damage, and sets the files as they were aside. Where the
// snapshot is damaged nothing can be kept, nor where all is gone of which there is a note. The next log in
// the directory is a new one then.
func Recover(dir, note string) (l Loss, err error) {
	switch gone := Gone(dir, note); {
	case gone == nil:
		l, err = recoverFiles(dir)
	case filepath.Base(dir) == replicatedKind:
		return l, errReplicated
	default:
		l.Kind, l.Damage = filepath.Base(dir), gone
	}
	if err == nil && Gone(dir, note) != nil {
		err = os.Remove(note)
	}
	return l, err
}

func recoverFiles(dir string) (Loss, error) {
	o, err := lookAt(dir)
	if d := (*Damage)(nil); errors.As(err, &d) {
		return withoutPapers(dir, d)
	}
	if err != nil {
		return Loss{}, err
	}
	l, err := recovered(dir, o)
	return l, errors.Join(err, o.close())
}

// RecoverLast has the group of a replicated log go on from the copy in dir alone, in
// which none runs: for when so many disks of the others are gone for good that no majority is
// left. What those acknowledged and this copy does not have is lost, and nobody knows what it was.
//
// The group has another name from then on. So a member of the old one that comes back all
// the same takes nothing from it and gives it nothing, and says so.
func RecoverLast(dir string) (Loss, error) {
	o, err := lookAt(dir)
	if err != nil {
		return Loss{}, err
	}
	l, err := goneOnAlone(dir, o)
	return l, errors.Join(err, o.close())
}

func goneOnAlone(dir string, o *owner) (l Loss, err error) {
	switch p := o.papers(); {
	case p.Kind != replicatedKind:
		return l, fmt.Errorf("this is the log of %s queues, of which there are no replicas", p.Kind)
	case p.Group == "":
		return l, errors.New("this copy has no part of a log yet: recover another node's")
	}
	if l.Report, err = verify(dir, o); err != nil {
		return l, err
	}
	if l.Kept = max(l.Last, l.Snapshot); l.Damage != nil {
		if l, err = cutBack(dir, o, l); err != nil {
			return l, err
		}
	}
	if l.Kept == 0 {
		return l, errors.New("nothing of this copy can be kept: recover another node's")
	}
	// Before the log says so: nobody of the old group must take this for one of theirs.
	if err := o.update(func(p *papers) {
		p.Group, p.Founded, p.Voted, p.VotedGroup = random(16), false, "", ""
	}); err != nil {
		return l, err
	}
	return l, elect(dir, o)
}

// elect ends a log with the entry that makes this node the only voter.
func elect(dir string, o *owner) error {
	shots, err := openSnapshots(dir, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	d, err := openDisk(dir, logFiles{size: segmentDefault}, o, shots, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	err = d.dropCovered(shots)
	last, failed := d.LastIndex()
	upTo, failed2 := shots.last()
	term, failed3 := d.GetUint64([]byte(termKey))
	if err = errors.Join(err, failed, failed2, failed3); err == nil {
		p := o.papers()
		err = errors.Join(d.SetUint64([]byte(termKey), term+1), d.entries.StoreLog(&raft.Log{
			Index: max(last, upTo) + 1, Term: term + 1, Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(alone(serverOf(p.Node, p.Disk))),
		}))
	}
	return errors.Join(err, d.Close())
}

// withoutPapers recovers a log whose papers are damaged: what they say of it is in the
// log as well, but for the node, which is whoever opens it next.
func withoutPapers(dir string, d *Damage) (l Loss, err error) {
	kind := filepath.Base(dir)
	switch kind {
	case durableKind:
	case replicatedKind:
		return l, errReplicated
	default:
		return l, fmt.Errorf("%w; and so it is not known what is in %s: name the directory %s or %s", d, dir, durableKind, replicatedKind)
	}
	m, err := openMeta(filepath.Join(dir, "log"))
	if bad := (*Damage)(nil); errors.As(err, &bad) {
		l.Aside, err = setAside(dir)
		l.Kind, l.Damage = kind, d
		return l, err
	}
	if err != nil {
		return l, err
	}
	aside := ""
	papersFile := filepath.Join(dir, ownerFile)
	if _, err := os.Stat(papersFile); err == nil {
		if aside, err = setAside(papersFile); err != nil {
			return l, err
		}
	}
	f, err := openSealed(dir, ownerFile)
	if err == nil {
		mark := string(m.at.Stable[markKey])
		err = f.write(papers{Version: ownerVersion, Disk: cmp.Or(mark, random(4)), Kind: kind, Marked: mark != "", Summed: true})
	}
	if err != nil {
		return l, err
	}
	if l, err = recoverFiles(dir); err != nil {
		return l, err
	}
	if l.Damage == nil {
		l.Kept = max(l.Last, l.Snapshot)
	}
	l.Damage, l.Aside = d, cmp.Or(l.Aside, aside)
	return l, nil
}

func recovered(dir string, o *owner) (l Loss, err error) {
	if l.Report, err = verify(dir, o); err != nil || l.Damage == nil {
		return l, err
	}
	if l.Kind != durableKind {
		return l, errReplicated
	}
	return cutBack(dir, o, l)
}

// cutBack gives up what follows the damage.
func cutBack(dir string, o *owner, l Loss) (_ Loss, err error) {
	shots, err := openSnapshots(dir, hclog.NewNullLogger())
	if err != nil {
		return l, err
	}
	upTo, err := shots.last()
	if err == nil {
		err = shots.readable()
	}
	path, p := filepath.Join(dir, "log"), o.papers()
	good := []raft.Log(nil)
	if err == nil {
		good = readGood(path, upTo, p)
	}
	if err != nil || upTo == 0 && len(good) == 0 {
		l.Aside, err = setAside(dir)
		return l, err
	}
	l.Kept = upTo
	if len(good) > 0 {
		l.Kept = max(upTo, good[len(good)-1].Index)
	}
	fresh := path + ".new"
	if err := errors.Join(os.RemoveAll(fresh), rewrite(fresh, good, p)); err != nil {
		return l, err
	}
	if l.Aside, err = setAside(path); err != nil {
		return l, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return l, err
	}
	w, err := openWitness(dir)
	if err != nil {
		return l, err
	}
	w.saw(l.Kept)
	return l, w.close()
}

// readGood returns the entries that follow the snapshot without a gap, as the files
// have them, whatever is known about those. An entry with another of its number
// after it was replaced.
func readGood(path string, upTo uint64, p papers) []raft.Log {
	all := map[uint64]raft.Log{}
	codec := wal.BinaryCodec{}
	plain := p.Plain
	if !p.Summed {
		plain = 1<<64 - 1
	}
	take := func(_ types.SegmentInfo, e types.LogEntry) (ok bool, err error) {
		defer func() {
			if recover() != nil { // of the library's, at what it did not write
				ok = true
			}
		}()
		var l raft.Log
		delete(all, e.Index)
		if codec.Decode(e.Data, &l) == nil && checked(e.Index, &l, plain) == nil {
			all[e.Index] = l
		}
		return true, nil
	}
	names, _ := filepath.Glob(filepath.Join(path, "*.wal")) // the pattern is right
	files := walsegment.NewFiler(path, walfs.New())
	for _, name := range names {
		var base, id uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%020d-%016x.wal", &base, &id); err == nil {
			_ = files.DumpSegment(base, id, 0, 0, take) // what came before the error was taken
		}
	}
	var good []raft.Log
	for i := upTo + 1; ; i++ {
		l, ok := all[i]
		if !ok {
			return good
		}
		good = append(good, l)
	}
}

// rewrite writes a log of entries.
func rewrite(path string, good []raft.Log, p papers) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	m, err := openMeta(path)
	if err != nil {
		return err
	}
	term := uint64(0)
	files, err := openFiles(path, logFiles{size: segmentDefault}, m, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	s := &summed{entries: files}
	for i := range good {
		term = max(term, good[i].Term)
		err = errors.Join(err, s.StoreLog(&good[i]))
	}
	err = errors.Join(err, s.SetUint64([]byte("CurrentTerm"), term), s.Set([]byte(markKey), []byte(p.Disk)))
	return errors.Join(err, files.Close())
}
