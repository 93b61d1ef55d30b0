package dashboard

import (
	"sync"
	"time"
)

// feed asks for what is to be shown once a second, for all who listen.
type feed struct {
	look  func() []byte // what the listeners get
	every time.Duration
	max   int // listeners

	mu     sync.Mutex
	all    map[chan []byte]struct{}
	latest []byte
	runs   bool
	closed bool
}

// listen returns what comes from now on, the latest at once, and a function that
// ends it; false: as many listen as may. The channel is closed when the feed is.
func (f *feed) listen() (news <-chan []byte, end func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.all) >= f.max {
		return nil, nil, false
	}
	c := make(chan []byte, 1) // who is slow misses some, and gets the latest
	if f.all == nil {
		f.all = make(map[chan []byte]struct{})
	}
	f.all[c] = struct{}{}
	if !f.runs {
		f.runs, f.latest = true, f.look()
		go f.run()
	}
	c <- f.latest
	return c, func() { f.leave(c) }, true
}

func (f *feed) leave(c chan []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, c)
}

// run goes on for as long as somebody listens.
func (f *feed) run() {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for range tick.C {
		if !f.tell() {
			return
		}
	}
}

// tell looks once, and reports whether anybody listens. The next one who comes
// after that starts anew.
func (f *feed) tell() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		f.runs = false
		return false
	}
	f.latest = f.look()
	for c := range f.all {
		select {
		case <-c: // not fetched yet
		default:
		}
		c <- f.latest
	}
	return true
}

// close ends all streams, so that a node that stops need not wait for them.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.all {
		close(c)
	}
	f.all = nil
}
