package replog

import (
	"path/filepath"
	"testing"
)

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
