package replog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	witnessFile  = "acknowledged"
	witnessMagic = 0xACC0
	witnessLen   = 24  // bytes of one of the two records
	witnessApart = 512 // they are in different sectors
	witnessEvery = 100 * time.Millisecond
)

// witness knows how far the log goes without having read it. A log whose end is
// gone looks like one that was never longer: so what was synced is written down
// beside it, before it is acknowledged, and that is synced a moment later, which costs no
// command an fsync. So whatever ends the process, the file has it all. Damage to what
// was written within that moment before the power goes looks like a torn write of
// what was never acknowledged; all else is noticed.
//
// Invariant: what the file says was durable in the log before.
type witness struct {
	f  *os.File
	mu sync.Mutex
	// acked is the last entry known to be durable, and told is what the file says.
	acked, told uint64
	loose       bool   // what the file says is not synced
	turn        uint64 // of the records: the last one that is synced; the other one is written to
}

// openWitness returns the witness of the log in dir; acked is what it says. Of its
// two records the newer one counts that is whole.
func openWitness(dir string) (*witness, error) {
	f, err := os.OpenFile(filepath.Join(dir, witnessFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &witness{f: f}
	w.turn, w.acked = testimony(f)
	w.told = w.acked
	return w, nil
}

// testimony reads the newer record that is whole.
func testimony(f *os.File) (turn, acked uint64) {
	var b [witnessLen]byte
	for i := range 2 {
		if n, _ := f.ReadAt(b[:], int64(i*witnessApart)); n < witnessLen {
			continue
		}
		t := binary.BigEndian.Uint64(b[4:])
		if binary.BigEndian.Uint32(b[:]) == witnessMagic && binary.BigEndian.Uint32(b[20:]) == crc32.Checksum(b[:20], castagnoli()) && t > turn {
			turn, acked = t, binary.BigEndian.Uint64(b[12:])
		}
	}
	return turn, acked
}

// witnessed returns how far the log in dir was acknowledged, 0 if nobody says.
func witnessed(dir string) (uint64, error) {
	f, err := os.Open(filepath.Join(dir, witnessFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, acked := testimony(f)
	return acked, f.Close()
}

// saw notes that the log is durable up to an entry.
func (w *witness) saw(index uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = index
	_ = w.record() // a disk that fails is tried again by tell
}

// back notes that the log is to end with an earlier entry. It returns when that
// is written down.
func (w *witness) back(index uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked = min(w.acked, index); w.told <= w.acked {
		return nil
	}
	return w.write()
}

// record tells the file. The caller holds w.mu.
func (w *witness) record() error {
	var b [witnessLen]byte
	binary.BigEndian.PutUint32(b[:], witnessMagic)
	binary.BigEndian.PutUint64(b[4:], w.turn+1)
	binary.BigEndian.PutUint64(b[12:], w.acked)
	binary.BigEndian.PutUint32(b[20:], crc32.Checksum(b[:20], castagnoli()))
	if _, err := w.f.WriteAt(b[:], int64(w.turn%2)*witnessApart); err != nil {
		return err
	}
	w.told, w.loose = w.acked, true
	return nil
}

// write tells the file, such that it outlives the loss of power. The caller holds w.mu.
func (w *witness) write() error {
	if err := w.record(); err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	w.turn++
	w.loose = false
	return nil
}

// keep syncs what is new, until ended is closed.
func (w *witness) keep(ended <-chan struct{}) {
	every := time.NewTicker(witnessEvery)
	defer every.Stop()
	for {
		select {
		case <-ended:
			return
		case <-every.C:
			w.tell()
		}
	}
}

// tell syncs what is new. A disk that fails is tried again later.
func (w *witness) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loose || w.told != w.acked {
		_ = w.write()
	}
}

// close writes both records, so that damage to one hides nothing.
func (w *witness) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.write(), w.write(), w.f.Close())
}

// watched are entries of which a witness knows.
type watched struct {
	entries
	w *witness
}

func (s *watched) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

func (s *watched) StoreLogs(l []*raft.Log) error {
	err := s.entries.StoreLogs(l)
	if err == nil && len(l) > 0 {
		s.w.saw(l[len(l)-1].Index)
	}
	return err
}

// DeleteRange removes the beginning of the log, or its end, of which the witness
// must hear before.
func (s *watched) DeleteRange(first, last uint64) error {
	end, err := s.LastIndex()
	if err == nil && last >= end && first <= end {
		err = s.w.back(max(first, 1) - 1)
	}
	if err != nil {
		return err
	}
	return s.entries.DeleteRange(first, last)
}

// Close writes down how far the log goes, and closes it.
func (s *watched) Close() error { return errors.Join(s.w.close(), s.entries.Close()) }
