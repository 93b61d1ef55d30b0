package replog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Propose appends a command and returns at once. Then, which must not block, is
// called exactly once, on a goroutine of the log's or this one, with what Apply
// returned here; or with an error that is ErrRefused if nothing was appended,
// and any other if the command may or may not be applied later. One that adds to the
// state is refused with ErrFull while there is RoomToRemove alone. The log owns the
// command's bytes from here on.
func (l *Log) Propose(command []byte, adds bool, then func(result []byte, err error)) {
	if err := l.take(proposal{command, adds, then}); err != nil {
		then(nil, fmt.Errorf("%w: %w", ErrRefused, err))
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take puts a command into the queue.
func (l *Log) take(p proposal) error {
	if len(p.command) > l.c.CommandMax {
		return fmt.Errorf("a command of %d bytes is larger than %d", len(p.command), l.c.CommandMax)
	}
	if room, err := l.Room(); !p.fits(room) {
		return err
	}
	if !l.leading() {
		return cmp.Or(l.Ready(), raft.ErrNotLeader)
	}
	if l.group != nil {
		if err := l.group.enough(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return errors.New("the node is stopping")
	case len(l.waiting) >= l.c.WaitingMax:
		return fmt.Errorf("%d commands wait already", len(l.waiting))
	case l.bytes+len(p.command) > l.c.WaitingBytes:
		return fmt.Errorf("commands of %d bytes wait already", l.bytes)
	}
	l.waiting = append(l.waiting, p)
	l.bytes += len(p.command)
	return nil
}

// fits reports whether there is room for a command.
func (p proposal) fits(r Room) bool { return r == RoomForAll || r == RoomToRemove && !p.adds }

// submit gives entries of what waits to raft, until ctx is done. It looks for room as
// often as much is written: what waits may be more than what is kept free.
func (l *Log) submit(ctx context.Context) {
	defer close(l.flight)
	written := 0
	for {
		select {
		case <-ctx.Done():
			l.turnAway()
			return
		case <-l.wake:
		}
		for {
			proposals := l.next()
			if len(proposals) == 0 {
				break
			}
			if written >= lookBytes {
				written = 0
				l.lookForSpace()
			}
			if proposals = l.fitting(proposals); len(proposals) == 0 {
				continue
			}
			var entry []byte
			for _, p := range proposals {
				entry = appendCommand(entry, p.command)
			}
			written += len(entry)
			l.flight <- flight{proposals, l.raft.ApplyLog(proposed(entry), enqueueWait)}
		}
	}
}

// fitting refuses the commands for which there is no room, and returns the others.
func (l *Log) fitting(proposals []proposal) []proposal {
	room, err := l.Room()
	if room == RoomForAll {
		return proposals
	}
	var fit, not []proposal
	for _, p := range proposals {
		if p.fits(room) {
			fit = append(fit, p)
		} else {
			not = append(not, p)
		}
	}
	refuse(not, err)
	return fit
}

// next takes as many commands as fit into an entry out of the queue.
func (l *Log) next() (taken []proposal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size, n := 0, 0
	for n < len(l.waiting) && size < entryMax {
		size += len(l.waiting[n].command)
		n++
	}
	if n == 0 {
		return nil
	}
	taken = append(taken, l.waiting[:n]...)
	left := copy(l.waiting, l.waiting[n:])
	clear(l.waiting[left:])
	l.waiting = l.waiting[:left]
	l.bytes -= size
	return taken
}

// turnAway answers those that wait when the log ends.
func (l *Log) turnAway() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	for {
		proposals := l.next()
		if len(proposals) == 0 {
			return
		}
		refuse(proposals, errors.New("the node is stopping"))
	}
}

func refuse(proposals []proposal, why error) {
	for _, p := range proposals {
		p.then(nil, fmt.Errorf("%w: %w", ErrRefused, why))
	}
}

// land answers entries when raft has applied them, in their order.
func (l *Log) land() {
	for f := range l.flight {
		results, err := l.landed(f)
		for i, p := range f.proposals {
			if err != nil {
				p.then(nil, err)
				continue
			}
			p.then(results[i], nil)
		}
	}
}

// landed waits for an entry to be applied; not for as long as others have no room
// for it.
func (l *Log) landed(f flight) ([][]byte, error) {
	over := make(chan error, 1)
	go func() { over <- f.future.Error() }()
	look := time.NewTicker(stuckAfter)
	defer look.Stop()
	for {
		select {
		case err := <-over:
			return l.answered(f, err)
		case <-look.C:
			if room, err := l.Room(); room == RoomForNone {
				return nil, unsure(err)
			}
		}
	}
}

func unsure(err error) error { return fmt.Errorf("it is not known whether the log took it: %w", err) }

func (l *Log) answered(f flight, err error) ([][]byte, error) {
	switch {
	case err == nil:
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return nil, fmt.Errorf("%w: %w", ErrRefused, cmp.Or(l.Ready(), err)) // such as that its disk fails
	case isFull(err):
		return nil, unsure(fmt.Errorf("%w: %w", ErrFull, err))
	default:
		return nil, unsure(err)
	}
	switch answer := f.future.Response().(type) {
	case [][]byte:
		return answer, nil
	case error:
		return nil, answer
	}
	return nil, errEntry
}
