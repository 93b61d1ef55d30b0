package trials

import (
	"time"

	"github.com/anteroom/anteroom/simtest"
)

// Kill makes kills of the world's nodes crash for good, as far as a quorum
// allows; no more nodes join than o.Faults.Adds.
func Kill(o *simtest.Options, kills int) {
	f := &o.Faults
	f.Kills, f.Gone = kills, kills
	if kills > 0 && f.Partitions == 0 { // or the splits would last as long
		f.Last = ForGood()
	}
}

// ForGood keeps a killed node down for longer than any run lasts.
func ForGood() simtest.Range { return simtest.Range{Min: time.Hour, Max: time.Hour} }

// Patience is how long a world may take to let everybody in after its span: ten
// times what it should, and ten minutes.
func Patience(o *simtest.Options) time.Duration {
	const atLeast, most = 10 * time.Minute, 1000 * time.Hour
	room := &o.Rooms[0]
	// A visit takes a slot for as long as it lasts, and while it is told so.
	seconds := float64(o.Users) * (o.Load.Browse.Max + 2*time.Second).Seconds() / float64(room.Target)
	if room.NewPerMinute > 0 {
		seconds += float64(o.Users) / float64(room.NewPerMinute) * 60
	}
	return atLeast + time.Duration(min(10*seconds, most.Seconds())*float64(time.Second))
}
