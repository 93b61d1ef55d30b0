package eviction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/qpid"
	"github.com/cockroachdb/datadriven"
)

// TestDialogues plays the files in testdata, each of which shows one rule of the
// protocol; -rewrite writes down what comes instead of comparing it.
//
// Machines are a, b, c…, the most senior first; the first life of each is named
// like it, the next ones c.2, c.3. Visitors are #1, #2…; an account is its member
// and the number of the wave that opened it, as in b@4; lines are numbered as they
// turn up. Leases are 2 s, waves 100 ms apart, exclude_after is 500 ms, and D is
// 4.45 s with sessions of 2 s. Passes are extended all the time, as long as the
// node that gave them may, and somebody on the site stays until told to leave.
// All that nodes do, and what changes at them, is printed indented below what
// caused it. Commands:
//
//	room NAME limit=N [session=D] [survivor=D] [partition=share|stop] [method=random] [pace=N] [queue]
//	                    queue: nobody walks in, also when nobody waits
//	nodes a b… [expect=N] [disk] [newcomers] [b=-D]
//	                    starts them; expect is how many found a cluster together.
//	                    Newcomers are told of others and never found one. With b=-60ms
//	                    the clock of b is behind
//	run D [quiet]       lets time go on, with messages that arrive at once, and
//	                    prints what changes, and when
//	wave                the same, for one wave
//	start NODE          waits until the node begins a wave. From here on messages wait for
//	deliver [FROM TO]   all messages, or the first of one link
//	lose FROM TO        the first message of a link
//	again FROM TO KIND  the last message of a kind that a link has delivered, or lost, once more
//	time D [NODE…]      lets the clocks go on, but of these nodes only sees to it
//	join NODE #…        visitors arrive, in this order; [room=NAME]
//	end #…              visitors on the site leave
//	show NODE #…        visitors of a lost node show their passes
//	set NODE KEY=VALUE… changes a room at run time, as in room; [room=NAME]
//	kill NODE…, boot NODE…
//	sleep NODE, wake NODE
//	leave NODE          says goodbye
//	split ab c          cuts all links between a or b and c
//	mend                ends it
//	clock NODE D        moves a wall clock
//	state
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		p := &play{links: map[[2]int][]Message{}, last: map[string]Message{}, lists: map[qpid.Epoch][]Member{}}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			if err := p.run(parsed(td)); err != nil {
				td.Fatalf(t, "%v", err)
			}
			out := p.out.String()
			p.out.Reset()
			if out == "" {
				return "nothing happens"
			}
			return out
		})
	})
}

// command is one of a dialogue's.
type command struct {
	name   string
	words  []string
	values map[string]string // of KEY=VALUE; looked up only
}

func parsed(td *datadriven.TestData) command {
	c := command{name: td.Cmd, values: map[string]string{}}
	for _, a := range td.CmdArgs {
		if len(a.Vals) > 0 {
			c.values[a.Key] = a.Vals[0]
		} else {
			c.words = append(c.words, a.Key)
		}
	}
	return c
}

func (p *play) run(c command) error {
	p.since, p.timed = p.now, false
	switch c.name {
	case "room":
		return p.addRoom(c)
	case "nodes":
		return p.addNodes(c)
	case "run":
		return p.pass(c)
	case "state":
		p.state()
		return nil
	case "split", "mend":
		p.parts = c.words
		p.meet()
		return nil
	case "join", "end", "show":
		return p.visitors(c)
	}
	var at []*actor
	for _, w := range c.words {
		if i := slices.IndexFunc(p.actors, func(a *actor) bool { return string(a.name) == w }); i >= 0 {
			at = append(at, p.actors[i])
		}
	}
	if len(at) == 0 && c.name != "wave" && c.name != "deliver" && c.name != "time" {
		return fmt.Errorf("%q names no node", c.name)
	}
	switch c.name {
	case "wave", "start", "deliver", "lose", "again":
		return p.messages(c, at)
	case "time", "clock":
		return p.clocks(c, at)
	case "set":
		return p.change(c, at[0])
	}
	return p.machines(c.name, at)
}

func (p *play) addRoom(c command) error {
	r := Room{Name: c.words[0], Session: 2 * time.Second, QueueAll: slices.Contains(c.words, "queue")}
	if err := configured(&r, c.values); err != nil {
		return err
	}
	p.rooms = append(p.rooms, r)
	slices.SortFunc(p.rooms, func(a, b Room) int { return strings.Compare(a.Name, b.Name) }) // as gates are
	fmt.Fprintf(&p.out, "D is %v\n", durationOf(newGate(newClusterSettings(playConfig()), r).delay()).Round(10*time.Millisecond))
	return nil
}

// configured sets what values say.
func configured(r *Room, values map[string]string) (err error) {
	for key, v := range values {
		switch key {
		case "limit":
			r.Target, err = strconv.Atoi(v)
		case "pace":
			r.NewPerMinute, err = strconv.Atoi(v)
		case "session":
			r.Session, err = time.ParseDuration(v)
		case "survivor":
			r.Survivor, err = time.ParseDuration(v)
		case "partition":
			r.OnPartition = map[string]Policy{"share": Share, "stop": Stop}[v]
		case "method":
			r.Method = map[string]Method{"random": Random}[v]
		case "room":
		default:
			err = fmt.Errorf("no room has a %q", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *play) addNodes(c command) error {
	var names []string
	disk, newcomers := false, false
	for _, w := range c.words {
		switch w {
		case "disk":
			disk = true
		case "newcomers":
			newcomers = true
		default:
			names = append(names, w)
		}
	}
	expect := len(names)
	if v, ok := c.values["expect"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			return err
		}
		expect = n
	}
	if newcomers {
		expect = 0
	}
	first := len(p.actors)
	p.open(names, expect, newcomers || len(names) > 1, disk)
	for _, a := range p.actors[first:] {
		if v, ok := c.values[string(a.name)]; ok {
			d, err := time.ParseDuration(v)
			if err != nil {
				return err
			}
			a.ahead = d.Microseconds()
		}
		p.boot(a)
	}
	p.meet()
	return nil
}

func (p *play) pass(c command) error {
	d, err := time.ParseDuration(c.words[0])
	if err != nil {
		return err
	}
	p.loud, p.timed = false, true
	for end := p.now + d.Microseconds(); p.now < end; {
		p.beat()
	}
	if slices.Contains(c.words, "quiet") {
		p.out.Reset()
		p.out.WriteString("…\n")
	}
	return nil
}

func (p *play) messages(c command, at []*actor) error {
	var link [2]int
	if len(at) == 2 {
		link = [2]int{at[0].index, at[1].index}
	}
	switch c.name {
	case "wave":
		p.loud = false
		for before := p.newest(); p.newest() == before; {
			p.beat()
		}
		return nil
	case "start":
		return p.start(at[0])
	case "deliver":
		if len(at) == 0 {
			p.deliverAll()
			return nil
		}
		if len(p.links[link]) == 0 {
			return fmt.Errorf("nothing is on its way from %s to %s", at[0].name, at[1].name)
		}
		p.deliver(link)
	case "lose":
		if len(p.links[link]) == 0 {
			return fmt.Errorf("nothing is on its way from %s to %s", at[0].name, at[1].name)
		}
		fmt.Fprintf(&p.out, "lost: %s\n", p.show(p.pop(link)))
	case "again":
		m, ok := p.last[p.key(link, c.words[len(c.words)-1])]
		if !ok {
			return fmt.Errorf("%v: there was no such message", c.words)
		}
		fmt.Fprintf(&p.out, "%s\n", p.show(m))
		p.step(m)
	}
	return nil
}

// newest is the number of the newest wave that anybody has installed.
func (p *play) newest() (num uint64) {
	for _, a := range p.actors {
		if a.up {
			num = max(num, a.installed.Num)
		}
	}
	return num
}

// start lets time go on until a asks the others.
func (p *play) start(a *actor) error {
	for before := a.epoch; p.now < p.since+5_000_000; {
		p.now += beat
		for _, b := range p.actors {
			p.loud = b == a
			p.tick(b)
		}
		if w := a.wave; w != nil && len(w.list) > 1 && w.list[0] == a.self.Member && w.epoch == a.epoch && w.epoch != before {
			p.loud = true
			return nil
		}
		p.loud = false
		p.deliverAll()
	}
	return fmt.Errorf("%s begins no wave", a.name)
}

func (p *play) clocks(c command, at []*actor) error {
	i := slices.IndexFunc(c.words, func(w string) bool { return len(w) > 1 })
	if i < 0 {
		return fmt.Errorf("%s: how long?", c.name)
	}
	d, err := time.ParseDuration(c.words[i])
	if err != nil {
		return err
	}
	if c.name == "clock" {
		at[0].ahead += d.Microseconds()
		return nil
	}
	p.now += d.Microseconds()
	for _, a := range at {
		p.tick(a)
	}
	p.count()
	return nil
}

func (p *play) machines(name string, at []*actor) error {
	for _, a := range at {
		switch name {
		case "kill":
			p.kill(a)
		case "boot":
			p.boot(a)
		case "sleep", "wake":
			a.asleep = name == "sleep"
		case "leave":
			a.Goodbye(p.time(a))
			p.collect(a)
		default:
			return fmt.Errorf("unknown command %q", name)
		}
	}
	if name == "kill" || name == "boot" {
		p.meet()
	}
	return nil
}

func (p *play) change(c command, a *actor) error {
	r := a.Gates()[p.room(c)].Room()
	if err := configured(&r, c.values); err != nil {
		return err
	}
	a.SetRoom(p.time(a), r)
	p.collect(a)
	return nil
}

func (p *play) room(c command) int {
	return max(0, slices.IndexFunc(p.rooms, func(r Room) bool { return r.Name == c.values["room"] }))
}

func (p *play) visitors(c command) error {
	words := c.words
	var a *actor
	if c.name != "end" {
		i := slices.IndexFunc(p.actors, func(a *actor) bool { return a.up && string(a.name) == words[0] })
		if i < 0 {
			return fmt.Errorf("there is no node %q", words[0])
		}
		a, words = p.actors[i], words[1:]
	}
	for _, w := range words {
		n, err := strconv.Atoi(strings.TrimPrefix(w, "#"))
		if err != nil {
			return fmt.Errorf("%q is no visitor", w)
		}
		switch c.name {
		case "join":
			p.join(a, p.room(c), n)
		case "end":
			p.end(n)
		default:
			p.present(a, n)
		}
	}
	return nil
}
