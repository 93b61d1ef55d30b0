package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/eviction"
)

// Used tickets are kept in a file for each hour, eight bytes for each, in the order
// in which they were used. They are written when they are used and not synced: what
// the process has written outlives it, and what a power cut takes is lost as it is
// for a node without a disk.
const (
	usedPrefix = "used-"
	usedSuffix = ".log"
	usedHour   = int64(time.Hour / time.Microsecond)
	usedHours  = 26 // kept: a day, what tickets live longer than that, and the hour begun
)

func (s *Store) usedPath(hour int64) string {
	return s.Path(usedPrefix + strconv.FormatInt(hour, 10) + usedSuffix)
}

// AppendUsed keeps used tickets, at now in Unix microseconds.
func (s *Store) AppendUsed(now int64, tickets []uint64) error {
	if hour := now / usedHour; s.used == nil || hour != s.hour {
		f, err := openUsed(s.usedPath(hour))
		if err != nil {
			return fmt.Errorf("node.data: %w", err)
		}
		if s.used != nil {
			_ = s.used.Close() // it was written to without an error
		}
		s.used, s.hour = f, hour
		if err := s.dropUsed(hour); err != nil {
			return fmt.Errorf("node.data: %w", err)
		}
	}
	b := make([]byte, 0, 8*len(tickets))
	for _, t := range tickets {
		b = binary.BigEndian.AppendUint64(b, t)
	}
	if _, err := s.used.Write(b); err != nil {
		_ = s.used.Close()
		s.used = nil // opened anew, without a part of a ticket at its end
		return fmt.Errorf("node.data: %w", err)
	}
	return nil
}

// openUsed opens a file to add to, and cuts off a ticket that was not written whole.
func openUsed(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size()%8 != 0 {
		err = f.Truncate(info.Size() &^ 7)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// usedAt lists the hours that there are files of, the latest first.
func (s *Store) usedAt() ([]int64, error) {
	names, err := filepath.Glob(s.Path(usedPrefix + "*" + usedSuffix))
	var hours []int64
	for _, name := range names {
		number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), usedPrefix), usedSuffix)
		if hour, err := strconv.ParseInt(number, 10, 64); err == nil {
			hours = append(hours, hour)
		}
	}
	slices.SortFunc(hours, func(a, b int64) int { return cmp.Compare(b, a) })
	return hours, err
}

func (s *Store) dropUsed(hour int64) error {
	hours, err := s.usedAt()
	for _, h := range hours {
		if h <= hour-usedHours {
			err = errors.Join(err, os.Remove(s.usedPath(h)))
		}
	}
	return err
}

// LoadUsed returns at most so many of the used tickets that are kept, the latest,
// with the oldest first. more reports whether there are others. The end of a
// file that was cut short is left out.
func (s *Store) LoadUsed(now int64, most int) (kept []eviction.UsedBatch, more bool, err error) {
	hours, err := s.usedAt()
	if err != nil {
		return nil, false, fmt.Errorf("node.data: %w", err)
	}
	for _, h := range hours {
		if h <= now/usedHour-usedHours {
			continue
		}
		if most == 0 {
			more = true
			break
		}
		tickets, cut, err := readUsed(s.usedPath(h), most)
		if err != nil {
			return nil, false, fmt.Errorf("node.data: %w", err)
		}
		more = more || cut
		most -= len(tickets)
		kept = append(kept, eviction.UsedBatch{At: (h + 1) * usedHour, Tickets: tickets})
	}
	slices.Reverse(kept)
	return kept, more, nil
}

// readUsed reads the last so many tickets of a file.
func readUsed(name string, most int) (tickets []uint64, cut bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	n := info.Size() / 8
	skip := max(0, n-int64(most))
	b := make([]byte, 8*(n-skip))
	if _, err := f.ReadAt(b, 8*skip); err != nil && err != io.EOF {
		return nil, false, err
	}
	for ; len(b) >= 8; b = b[8:] {
		tickets = append(tickets, binary.BigEndian.Uint64(b))
	}
	return tickets, skip > 0, nil
}
