package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync/atomic"

	"github.com/DeRuina/timberjack"

	"github.com/anteroom/anteroom/internal/history"
)

// linesMax bounds the entries that wait to be written.
const linesMax = 1 << 16

// admissionLog appends entries to a file, each by a single write, so that what
// was written survives the process. The node does not wait for the disk: while
// that is too slow, or full, the log has gaps, and says so. A file that is large
// enough, or of yesterday, is packed and put aside.
type admissionLog struct {
	out     io.WriteCloser
	name    string // of the file; "": it is none that can be cut, such as a pipe
	log     *slog.Logger
	entries chan history.Entry
	done    chan struct{} // closed when all are written
	missed  atomic.Int64
	broken  bool // the last write failed; of the goroutine that writes
}

// admissionsKept is how much of admission logs is kept.
type admissionsKept struct {
	size int // MiB of a file; 0: whatever a day brings
	days int // until a file that was put aside is removed; 0: never
}

// openAdmissions begins to write. What a crash has left of a last line is cut off.
func openAdmissions(name string, keep admissionsKept, log *slog.Logger) (*admissionLog, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--admissions: %w", err)
	}
	if err := mend(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--admissions %s: %w", name, err), f.Close())
	}
	a := &admissionLog{out: f, log: log, entries: make(chan history.Entry, linesMax), done: make(chan struct{})}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("--admissions: %w", err)
		}
		size := keep.size
		if size == 0 {
			size = math.MaxInt32
		}
		a.name, a.out = name, &timberjack.Logger{
			Filename: name, MaxSize: size, MaxAge: keep.days, RotateAt: []string{"00:00"}, Compression: "gzip", FileMode: 0o600,
		}
	}
	go a.run()
	return a, nil
}

// mend cuts an unfinished line off the end of a log.
func mend(f *os.File) error {
	const lineMax = 4096
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	start := max(0, info.Size()-lineMax)
	b := make([]byte, info.Size()-start)
	if _, err := f.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	last := b[bytes.LastIndexByte(b, '\n')+1:]
	switch {
	case len(last) == 0:
		return nil
	case !bytes.HasPrefix([]byte(`{"at":`), last[:min(len(last), 6)]):
		return errors.New("it is no admission log; name another file")
	}
	return f.Truncate(info.Size() - int64(len(last)))
}

// write does not block.
func (a *admissionLog) write(e history.Entry) {
	select {
	case a.entries <- e:
	default:
		a.missed.Add(1)
	}
}

func (a *admissionLog) run() {
	defer close(a.done)
	for e := range a.entries {
		line, _ := json.Marshal(e) // strings and numbers
		n, err := a.out.Write(append(line, '\n'))
		if err != nil {
			a.missed.Add(1)
			a.uncut(n)
		}
		if err != nil && !a.broken {
			a.log.Error("the admission log cannot be written and has gaps from here on", "err", err)
		}
		a.broken = err != nil
		if n := a.missed.Load(); n > 0 && err == nil && len(a.entries) == 0 {
			a.missed.Add(-n)
			a.log.Warn("the admission log lacks lines", "lines", n)
		}
	}
}

// uncut takes back the part of a line that did get onto a full disk.
func (a *admissionLog) uncut(n int) {
	if n == 0 || a.name == "" {
		return
	}
	if info, err := os.Stat(a.name); err == nil {
		_ = os.Truncate(a.name, info.Size()-int64(n)) // that the disk is in trouble is told already
	}
}

// close waits until all is written. Nothing may be written any more.
func (a *admissionLog) close() {
	close(a.entries)
	<-a.done
	if err := a.out.Close(); err != nil {
		a.log.Error("the admission log may lack its end", "err", err)
	}
	if n := a.missed.Load(); n > 0 {
		a.log.Warn("the admission log lacks lines", "lines", n)
	}
}
