package trials

import (
	"errors"
	"fmt"
)

// shownMax is how many failures are told one by one.
const shownMax = 10

// Failures are the runs of a batch that failed.
type Failures struct {
	Runs  int // all of them, good ones included
	Stack []byte
	n     int
	shown []error
}

// Add counts one run. replay is the command that repeats it.
func (f *Failures) Add(o *Outcome, replay string) {
	f.Runs++
	if o.Err == nil {
		return
	}
	f.n++
	var p *Panic
	if errors.As(o.Err, &p) && f.Stack == nil {
		f.Stack = p.Stack
	}
	if f.n <= shownMax {
		f.shown = append(f.shown, fmt.Errorf("seed %d: %s; replay it with: %s", o.Seed, o.Reason(), replay))
	}
}

// Err is nil when every run was good. Else it says of the first few what was
// wrong and how to replay them, each on a line, and how many there are.
func (f *Failures) Err() error {
	if f.n == 0 {
		return nil
	}
	if f.Runs > 1 {
		return errors.Join(append(f.shown, fmt.Errorf("%d of %d runs failed", f.n, f.Runs))...)
	}
	return f.shown[0]
}
