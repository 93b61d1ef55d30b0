package governor

// Figures are what came of requests to an origin, ever since somebody began to count.
type Figures struct {
	Asked    uint64
	Answered uint64 // that are over, well or not
	Failed   uint64 // of them with a 5xx, or without an answer
	Slow     uint64 // of them begun to be answered later than the goal
	Loads    uint64 // of them that say how loaded the origin is
	Load     uint64 // the sum of what those say, in millionths; 1: it bears no more
}

// Plus returns the figures of two together.
func (f Figures) Plus(o Figures) Figures {
	return Figures{f.Asked + o.Asked, f.Answered + o.Answered, f.Failed + o.Failed, f.Slow + o.Slow, f.Loads + o.Loads, f.Load + o.Load}
}

// Since returns what was added to old, which the same node has counted. Where there is
// less than before the node has begun anew, and all is.
func (f Figures) Since(old Figures) Figures {
	if f.Asked < old.Asked || f.Answered < old.Answered || f.Failed < old.Failed || f.Slow < old.Slow || f.Loads < old.Loads || f.Load < old.Load {
		return f
	}
	return Figures{f.Asked - old.Asked, f.Answered - old.Answered, f.Failed - old.Failed, f.Slow - old.Slow, f.Loads - old.Loads, f.Load - old.Load}
}

// Verdict is what a window says of the origin.
type Verdict string

// The verdicts.
const (
	Unknown    Verdict = "unknown"    // too few answers
	Healthy    Verdict = "healthy"    // it would bear more
	Near       Verdict = "near"       // it bears this, and hardly more
	Overloaded Verdict = "overloaded" // it bears less
)

// Cause is the figure that a verdict other than Healthy goes by.
type Cause string

// The causes.
const (
	Failing    Cause = "errors"
	Slow       Cause = "latency"
	Unanswered Cause = "unanswered" // requests are made, and answers do not come
	Load       Cause = "load"       // by the header
)

// Judgement is a verdict and the figure behind it.
type Judgement struct {
	Verdict Verdict
	Cause   Cause   // empty: Healthy or Unknown
	Figure  float64 // a share of the answers, or of the requests; for Load the mean of what the origin says
}

const (
	slowMost = 0.05 // share of the answers that may be slow: the goal is about their 95th percentile
	loadMost = 1
	loadNear = 0.95
	fewest   = 3  // failed or slow answers that say something
	enough   = 50 // answers of a window, or requests
)

// Judge says what a window is evidence of. It is Near from a quarter of the failures
// that may be, and from half of the slow answers.
func (c Config) Judge(f Figures) Judgement {
	if f.Asked >= enough && f.Answered < f.Asked/2 {
		return Judgement{Overloaded, Unanswered, 1 - float64(f.Answered)/float64(f.Asked)}
	}
	if f.Answered < enough {
		return Judgement{Verdict: Unknown}
	}
	failed, slow, load := float64(f.Failed)/float64(f.Answered), float64(f.Slow)/float64(f.Answered), 0.0
	if f.Loads > 0 {
		load = float64(f.Load) / float64(f.Loads) / 1e6
	}
	switch {
	case failed > c.Errors && f.Failed >= fewest:
		return Judgement{Overloaded, Failing, failed}
	case slow > slowMost && f.Slow >= fewest:
		return Judgement{Overloaded, Slow, slow}
	case load > loadMost:
		return Judgement{Overloaded, Load, load}
	case failed > c.Errors/4:
		return Judgement{Near, Failing, failed}
	case slow > slowMost/2:
		return Judgement{Near, Slow, slow}
	case load > loadNear:
		return Judgement{Near, Load, load}
	}
	return Judgement{Verdict: Healthy}
}
