package gateway

import (
	"context"
	"sync"
	"time"
)

// patience is a context that ends after a while, which begins when somebody first
// waits for it: most check-ins are answered on the spot, and a timer for each
// would cost as much as the answer.
type patience struct {
	context.Context // of the request
	longest         time.Duration

	mu     sync.Mutex
	timed  context.Context // nil: nobody has waited yet
	cancel context.CancelFunc
}

func (p *patience) context() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.cancel = context.WithTimeout(p.Context, p.longest)
	}
	return p.timed
}

func (p *patience) Deadline() (time.Time, bool) { return p.context().Deadline() }

func (p *patience) Done() <-chan struct{} { return p.context().Done() }

// Err does not begin the wait.
func (p *patience) Err() error {
	p.mu.Lock()
	timed := p.timed
	p.mu.Unlock()
	if timed != nil {
		return timed.Err()
	}
	return p.Context.Err()
}

// Value lets contexts that are made of this one find the timer, as
// context.WithTimeout looks for one.
func (p *patience) Value(key any) any {
	p.mu.Lock()
	timed := p.timed
	p.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return p.Context.Value(key)
}

// end is called when nobody uses it any more.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}
