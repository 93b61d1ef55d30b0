package replog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

const (
	reserveLeast = 16 << 20 // bytes that are kept free: some files of the log, and votes
	roomBeside   = 2 << 20  // bytes that a snapshot which is to make room must leave free
	warnTimes    = 8        // as much as is kept free, and who runs the node is warned
	spaceEvery   = 200 * time.Millisecond
	lookBytes    = 1 << 20          // after so many that were written, however soon
	shrinkEvery  = 10 * time.Second // between snapshots of a full disk's log that has hardly grown
)

// ErrFull is a command for which a disk has no room.
var ErrFull = errors.New("the disk is full")

// isFull reports whether an error of a disk is for want of room, as opposed to
// one that breaks.
func isFull(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Storage is how much room there is for a log.
type Storage struct {
	Dir         string
	Free, Total uint64 // bytes of its disk; 0 and 0: it is not known
	// Reserve is how much of Free is kept for what makes room again, which must be
	// written too: a lease, an acknowledgement, a snapshot of all that is in.
	Reserve uint64
	Low     bool // it will be full soon
	Full    bool // less is free than the reserve, or the last entry could not be written
}

// Room is what a log takes, as far as there is room.
type Room uint8

const (
	RoomForAll   Room = iota
	RoomToRemove      // for what adds nothing
	RoomForNone
)

// space watches how much room there is.
type space struct {
	mu sync.Mutex
	s  Storage
}

func (p *space) now() Storage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.s
}

// look takes in how much there is, and returns how it was before. A disk that
// hovers about a bound does not go to and fro.
func (p *space) look(free, total, reserve uint64) (before, now Storage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before = p.s
	p.s.Free, p.s.Total, p.s.Reserve = free, total, reserve
	below := func(was bool, bound uint64) bool {
		if was {
			bound += bound / 4
		}
		return total > 0 && free < bound
	}
	p.s.Full = below(before.Full, reserve)
	p.s.Low = below(before.Low, warnTimes*reserve)
	return before, p.s
}

// watchSpace looks after the disk until ctx is done.
func (l *Log) watchSpace(ctx context.Context) {
	every := time.NewTicker(spaceEvery)
	defer every.Stop()
	for {
		l.lookForSpace()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// measure takes in how much room there is, unless the system does not say: the next
// write says what is wrong.
func (l *Log) measure(snapshot int64) (free uint64, before, now Storage) {
	free, total, err := l.c.space(l.c.Dir)
	if err != nil {
		now = l.space.now()
		return now.Free, now, now
	}
	before, now = l.space.look(free, total, reserveLeast+uint64(snapshot))
	return free, before, now
}

func (l *Log) lookForSpace() {
	l.looking.Lock()
	defer l.looking.Unlock()
	snapshot, grown := l.machine.sizes()
	free, before, now := l.measure(snapshot)
	log := l.log.With(slog.String("dir", l.c.Dir), slog.Uint64("free", free), slog.Uint64("reserve", now.Reserve))
	switch {
	case now.Full && !before.Full:
		log.Error("queues: the disk is full; nothing is put in until there is room, and what is in can be taken")
	case now.Low && !before.Low:
		log.Warn("queues: the disk is nearly full")
	case before.Full && !now.Full:
		log.Info("queues: the disk has room again")
	default:
	}
	// What is finished makes room. How much less there is than in the last snapshot
	// nobody knows, and where all is taken and nothing is put in, no log grows.
	enough := grown >= max(snapshot, int64(l.c.segmentSize)) || grown > 0 && time.Since(l.shrunk) >= shrinkEvery
	if now.Full && enough && free > uint64(snapshot)+roomBeside {
		l.shrunk = time.Now()
		select {
		case l.machine.full <- struct{}{}:
		default:
		}
	}
}

// Storage returns how much room there is.
func (l *Log) Storage() Storage {
	s := l.space.now()
	s.Dir = l.c.Dir
	s.Full = s.Full || l.late.err() != nil || l.disk.stuck.Load()
	return s
}

// Room returns for what there is room, here or, if this node leads a group, on as
// many disks as it takes. The error says where it is missing.
func (l *Log) Room() (Room, error) {
	if err := l.late.err(); err != nil {
		return RoomForNone, err
	}
	if l.group != nil {
		return l.group.room()
	}
	return l.ownRoom()
}

func (l *Log) ownRoom() (Room, error) {
	s := l.space.now()
	switch err := l.disk.Fault(); {
	case l.disk.stuck.Load():
		return RoomForNone, fmt.Errorf("%w: %s: no entry can be written", ErrFull, l.c.Dir)
	case isFull(err) && !l.leading():
		return RoomForNone, fmt.Errorf("%w: %s: %w", ErrFull, l.c.Dir, err)
	case s.Full:
		return RoomToRemove, fmt.Errorf("%w: %s has %d MiB free, and keeps %d for what makes room", ErrFull, l.c.Dir, s.Free>>20, s.Reserve>>20)
	}
	return RoomForAll, nil
}
