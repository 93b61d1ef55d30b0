package rules

import "errors"

var errFull = errors.New("rules: full")

var (
	_          = errFull
	_    error = (*failure)(nil)
	last int   // want var
)

var names = [...]string{"a", "b"} // want var

var errA, count = errors.New("rules: a"), 0 // want var

type failure struct{}

func (*failure) Error() string { return "" }

func local() {
	var n int
	_ = n
}
