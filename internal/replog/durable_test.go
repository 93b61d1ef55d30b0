package replog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(t.Context()))
}

func TestAcknowledgedCommandsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b") // made as needed
	r := start(t, durable(dir))
	want := numbered("c", 300)
	r.put(t, want...)
	equal(t, "applied", r.state.texts(), want)
	if err := r.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	r = start(t, durable(dir))
	r.put(t, "last")
	equal(t, "after a restart", r.state.texts(), append(want, "last"))
}

func TestResultsAreThoseOfTheirCommands(t *testing.T) {
	t.Parallel()
	r := start(t, durable(t.TempDir()))
	until(t, "it leads", r.state.leading)
	var waiting []<-chan answer
	for i := range 500 {
		waiting = append(waiting, r.propose(fmt.Sprint("c", i)))
	}
	for i, w := range waiting {
		if a := <-w; a.err != nil || a.result != fmt.Sprint(i+1) {
			t.Fatalf("answer %d = %+v", i, a)
		}
	}
	for i, w := range waiting {
		if len(w) > 0 {
			t.Fatalf("command %d was answered twice", i)
		}
	}
}

func TestAcknowledgedCommandsSurviveACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, durable(dir))
	var want []string
	for i := range 5 {
		some := numbered(fmt.Sprint("c", i, "."), 20)
		r.put(t, some...)
		want = append(want, some...)
		after := start(t, durable(copied(t, dir)))
		until(t, "it leads", after.state.leading)
		equal(t, "after a crash", after.state.texts(), want)
		if err := after.stop(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// The last write of a power cut may be there in part or with anything in it. It
// was not acknowledged.
func TestTornLastRecordIsCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, durable(dir))
	want := numbered("c", 40)
	r.put(t, want...)
	before := copied(t, dir)
	end := (written(t, before) + 7) &^ 7 // a record may end with zeros, and the next one begins at a multiple of 8
	r.put(t, strings.Repeat("x", 3000))
	torn := written(t, copied(t, dir))
	if torn <= end+3000 {
		t.Fatalf("the log went from %d to %d bytes", end, torn)
	}
	whole, err := os.ReadFile(segment(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{end, end + 1, end + 7, end + 8, end + 100, end + 1500, torn - 9, torn - 1} {
		for _, rest := range []byte{0, 0xff} {
			after := copied(t, before)
			bytes := append([]byte(nil), whole...)
			for i := cut; i < torn; i++ {
				bytes[i] = rest
			}
			if slices.Equal(bytes, whole) {
				continue // it had these values, so nothing is torn
			}
			if err := os.WriteFile(segment(t, after), bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			again := start(t, durable(after))
			again.put(t, "next")
			equal(t, fmt.Sprintf("cut at %d of %d", cut-end, torn-end), again.state.texts(), append(want[:40:40], "next"))
			_ = again.stop()
		}
	}
}

// segment returns the file of a log that has only one.
func segment(t testing.TB, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	if err != nil || len(all) != 1 {
		t.Fatalf("segments %v: %v", all, err)
	}
	return all[0]
}

// written returns how much of a log's file is not empty.
func written(t testing.TB, dir string) int {
	t.Helper()
	bytes, err := os.ReadFile(segment(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	n := len(bytes)
	for n > 0 && bytes[n-1] == 0 {
		n--
	}
	return n
}

func TestDirectoryThatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, durable(dir))
	r.put(t, "c")
	if _, err := Open(durable(dir)); err == nil || !strings.Contains(err.Error(), "another process is using it") || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open of a directory in use = %v", err)
	}
	_ = r.stop()

	other := durable(dir)
	other.Node = "n2"
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "belongs to node n1, and this is n2") {
		t.Errorf("Open of another node's directory = %v", err)
	}
	replicated := member("n1")
	replicated.Dir = dir
	if _, err := Open(replicated); err == nil || !strings.Contains(err.Error(), "for durable queues, not for replicated ones") {
		t.Errorf("Open of a directory of another kind = %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(durable(dir)); err == nil || !strings.Contains(err.Error(), "ends with entry 0, and 4 were acknowledged") {
		t.Errorf("Open of papers without their log = %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(durable(filepath.Join(file, "queues"))); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("Open below a file = %v", err)
	}
}

func TestReadOnlyDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere; TestDirectoryThatIsNotOursIsRefused has what it cannot write")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(durable(dir)); err == nil || !errors.Is(err, os.ErrPermission) {
		t.Errorf("Open = %v", err)
	}
}

func TestLogIsCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := durable(dir)
	c.CompactBytes = 1 << 20
	r := start(t, c)
	var want []string
	for i := range 60 {
		some := fmt.Sprintf("%04d%s", i, strings.Repeat("x", 200<<10))
		want = append(want, some)
		r.put(t, some)
	}
	// Each snapshot waits for the log to grow by as much as the last one was large:
	// at 1.2, 3, 7 and 14 MB here; so the log is never much longer than the state.
	until(t, "the log was cut", func() bool {
		first, err := r.disk.FirstIndex()
		return err == nil && first > 20
	})
	after := start(t, durable(copied(t, dir)))
	until(t, "it leads", after.state.leading)
	equal(t, "after a crash", after.state.texts(), want)
	_ = after.stop()
	_ = r.stop()

	if err := os.RemoveAll(filepath.Join(dir, "snapshots")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "Bring the directory back") {
		t.Errorf("Open without the snapshot = %v", err)
	}
}

func TestSnapshotThatIsRefusedIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := durable(dir)
	c.CompactBytes = 1
	r := start(t, c)
	r.put(t, numbered("c", 10)...)
	until(t, "there is a snapshot", func() bool {
		first, err := r.disk.FirstIndex()
		return err == nil && first > 2
	})
	_ = r.stop()
	c.SnapshotMax = 8
	c.Machine = &list{}
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "more than the bound of 8") {
		t.Errorf("Open = %v", err)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	c := durable(t.TempDir())
	c.WaitingMax, c.CommandMax, c.WaitingBytes = 10, 1000, 5000
	state := &list{}
	c.Machine = state
	r := start(t, c)
	until(t, "it leads", state.leading)
	if a := <-r.propose(strings.Repeat("x", 1001)); !errors.Is(a.err, ErrRefused) || !strings.Contains(a.err.Error(), "larger than 1000") {
		t.Errorf("a large command = %v", a.err)
	}
	hold := make(chan struct{})
	state.mu.Lock()
	state.hold = hold
	state.mu.Unlock()
	var waiting []<-chan answer
	refused := 0
	for refused == 0 && len(waiting) < 10000 {
		w := r.propose("c")
		select {
		case a := <-w:
			if !errors.Is(a.err, ErrRefused) || !strings.Contains(a.err.Error(), "10 commands wait already") {
				t.Fatalf("answer = %+v", a)
			}
			refused++
		default:
			waiting = append(waiting, w)
		}
	}
	close(hold)
	for _, w := range waiting {
		if a := <-w; a.err != nil {
			t.Fatal(a.err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	equal(t, "applied", state.texts(), numberedSame("c", len(waiting)))
	for range 100 { // in all more than may wait at once
		r.put(t, strings.Repeat("x", 100))
	}
}

func numberedSame(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

func TestEndAnswersEverything(t *testing.T) {
	t.Parallel()
	r := start(t, durable(t.TempDir()))
	until(t, "it leads", r.state.leading)
	var waiting []<-chan answer
	for i := range 2000 {
		waiting = append(waiting, r.propose(fmt.Sprint(i)))
	}
	_ = r.stop()
	applied := len(r.state.texts())
	acknowledged := 0
	for i, w := range waiting {
		select {
		case a := <-w:
			if a.err == nil {
				acknowledged++
			}
		default:
			t.Fatalf("command %d has no answer", i)
		}
	}
	if acknowledged > applied {
		t.Errorf("%d acknowledged, %d applied", acknowledged, applied)
	}
	if a := <-r.propose("late"); !errors.Is(a.err, ErrRefused) {
		t.Errorf("after the end = %v", a.err)
	}
	if leads := r.state.leading(); leads {
		t.Error("it leads after its end")
	}
}

func TestRemovedEntriesAreNotFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, err := openOwner(dir, "n1", "durable", false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.close() }()
	shots, err := openSnapshots(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDisk(dir, logFiles{size: segmentDefault}, o, shots, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for i := range uint64(20) {
		if err := d.StoreLog(&raft.Log{Index: i + 1, Term: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.DeleteRange(1, 10), d.DeleteRange(18, 20)); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(21) {
		var l raft.Log
		if err := d.GetLog(i, &l); errors.Is(err, raft.ErrLogNotFound) != (i < 11 || i > 17) || err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			t.Errorf("GetLog(%d) = %v", i, err)
		}
	}
}
