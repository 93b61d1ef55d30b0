package series

import (
	"bytes"
	"cmp"
	"compress/flate"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// grace is how long after its end an hour is open for minutes of other nodes that
// come late.
const grace = 2 * minute

// Kept are the minutes of nodes: of this one, and of those that it keeps for
// others. The hours that are over are packed, with the sum of the hour beside its
// minutes. Its methods may be called from many goroutines at once.
type Kept struct {
	log *slog.Logger

	mu    sync.RWMutex
	nodes map[string]map[string]*minutes // by node and room
	disk  *disk                          // nil: in memory only
}

// minutes are those of one room at one node.
type minutes struct {
	open  []chunk // hours that may grow, the oldest first
	hours []block // the others, likewise
}

func (m *minutes) sort() {
	slices.SortStableFunc(m.hours, func(a, b block) int { return cmp.Compare(a.start, b.start) })
}

// block is an hour of one room at one node: its sum, and then its minutes, each
// packed by itself.
type block struct {
	start  int64
	packed []byte // nil: on disk
	place
}

// place is where on disk a block is.
type place struct {
	day      int64 // whose file it is in
	at       int64 // offset
	sum, len int   // bytes of the sum, and of all
}

// NewKept returns what is kept in a directory, made if it is not there; "" for memory
// only. What is damaged is left out and told to the log.
func NewKept(dir string, log *slog.Logger) (*Kept, error) {
	k := &Kept{log: log, nodes: make(map[string]map[string]*minutes)}
	if dir == "" {
		return k, nil
	}
	k.disk = &disk{dir: dir, log: log}
	if err := k.disk.load(k); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return k, nil
}

// keeps is for how long.
func (k *Kept) keeps() int64 {
	if k.disk == nil {
		return KeepTens
	}
	return KeepMinutes
}

func (k *Kept) of(node, room string) *minutes {
	rooms := k.nodes[node]
	if rooms == nil {
		rooms = make(map[string]*minutes)
		k.nodes[node] = rooms
	}
	m := rooms[room]
	if m == nil {
		m = &minutes{}
		rooms[room] = m
	}
	return m
}

// nodesMax bounds the nodes that something is kept of.
const nodesMax = 256

// Add takes in a minute of a node. One that is there already is left out, so that it
// may be sent again.
func (k *Kept) Add(node string, m Minute) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.has(node, m.At, m.mark()) {
		return nil
	}
	if k.nodes[node] == nil && len(k.nodes) >= nodesMax {
		return fmt.Errorf("history: minutes of %d nodes are kept, and that of %s is left out", nodesMax, node)
	}
	k.put(node, m)
	if k.disk == nil {
		return nil
	}
	return k.disk.appendMinute(node, m)
}

func (k *Kept) put(node string, m Minute) {
	for i := range m.Rows {
		of := k.of(node, m.Rows[i].Room)
		start := m.At / hour * hour
		at, found := slices.BinarySearchFunc(of.open, start, func(c chunk, start int64) int { return int(c.start - start) })
		if !found {
			of.open = slices.Insert(of.open, at, chunk{start: start})
		}
		of.open[at].rows = m.Rows[i].Row.append(of.open[at].rows, start, minute)
	}
}

// has reports whether a minute of a node with that mark is there.
func (k *Kept) has(node string, at int64, mark Settings) (found bool) {
	of := k.nodes[node][self]
	if of == nil {
		return false
	}
	var u unpacker
	look := func(r *Row) bool { found = found || r.At == at && r.Settings == mark; return !found }
	for _, c := range of.open {
		if c.start == at/hour*hour {
			_ = Decode(c.rows, c.start, minute, look) // written here
		}
	}
	for i := range of.hours {
		if of.hours[i].start == at/hour*hour && !found {
			k.visit(&u, &of.hours[i], minute, look)
		}
	}
	return found
}

// Turn packs the hours that are over, and forgets what is too old. Call it once a
// minute with the time of now, Unix seconds.
func (k *Kept) Turn(now int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var fresh []packed
	for node, rooms := range k.nodes {
		for room, m := range rooms {
			for len(m.open) > 0 && m.open[0].start+hour+grace <= now {
				fresh = append(fresh, pack(node, room, m.open[0]))
				m.open = slices.Clone(m.open[1:])
			}
		}
	}
	slices.SortStableFunc(fresh, func(a, b packed) int { // a node's own block says that the hour is whole: see onlyWhole
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.room, a.room))
	})
	var err error
	if len(fresh) > 0 && k.disk != nil {
		err = k.disk.appendHours(fresh, k)
	}
	for i := range fresh {
		p := &fresh[i]
		m := k.of(p.node, p.room)
		m.hours = append(m.hours, p.block)
		m.sort()
	}
	k.forget(now - k.keeps())
	return err
}

// forget drops hours that are over by then.
func (k *Kept) forget(before int64) {
	for node, rooms := range k.nodes {
		for room, m := range rooms {
			m.hours = slices.DeleteFunc(m.hours, func(b block) bool { return b.start+hour <= before })
			if len(m.hours)+len(m.open) == 0 {
				delete(rooms, room)
			}
		}
		if len(rooms) == 0 {
			delete(k.nodes, node)
		}
	}
	if k.disk != nil {
		k.disk.forget(before)
	}
}

// packed is a block with whose it is.
type packed struct {
	node, room string
	block
}

func pack(node, room string, c chunk) packed {
	var sum Row
	_ = Decode(c.rows, c.start, minute, func(r *Row) bool { // written here
		if sum.At == 0 {
			sum.At = c.start
		}
		sum.Then(r)
		return true
	})
	p := packed{node: node, room: room, block: block{start: c.start}}
	p.packed = deflate(nil, sum.append(nil, c.start, hour))
	p.sum = len(p.packed)
	p.packed = deflate(p.packed, c.rows)
	p.len = len(p.packed)
	return p
}

func deflate(to, b []byte) []byte {
	out := bytes.NewBuffer(to)
	w, err := flate.NewWriter(out, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("series: " + err.Error()) // the level is right, and a buffer takes everything
	}
	return out.Bytes()
}

// rawMax bounds what an hour unpacks to: a minute of every bucket is some 20 kB.
const rawMax = 4 << 20

// unpacker unpacks one block after another.
type unpacker struct {
	in  bytes.Reader
	z   io.ReadCloser
	raw bytes.Buffer
}

// inflate returns bytes that are good until the next call.
func (u *unpacker) inflate(b []byte) ([]byte, error) {
	u.in.Reset(b)
	if u.z == nil {
		u.z = flate.NewReader(&u.in)
	} else if err := u.z.(flate.Resetter).Reset(&u.in, nil); err != nil {
		return nil, err
	}
	u.raw.Reset()
	n, err := u.raw.ReadFrom(io.LimitReader(u.z, rawMax+1))
	if err == nil && n > rawMax {
		err = errRow
	}
	return u.raw.Bytes(), err
}

// visit hands out the rows of a block: its minutes, or for whole hours its sum.
func (k *Kept) visit(u *unpacker, b *block, step int64, visit func(*Row) bool) {
	raw, err := k.unpack(u, b, step)
	if err == nil {
		err = Decode(raw, b.start, step, visit)
	}
	if err != nil {
		k.log.Warn("history: an hour cannot be read, and is left out", "hour", b.start, "err", err)
	}
}

func (k *Kept) unpack(u *unpacker, b *block, step int64) ([]byte, error) {
	from, to := b.sum, b.len
	if step == hour {
		from, to = 0, b.sum
	}
	if b.packed != nil {
		return u.inflate(b.packed[from:to])
	}
	part, err := k.disk.read(b.place, from, to)
	if err != nil {
		return nil, err
	}
	return u.inflate(part)
}

// read adds to f what there is of a room at a node, in steps of whole minutes.
func (k *Kept) read(node, room string, f *fold) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	m := k.nodes[node][room]
	if m == nil {
		return
	}
	var u unpacker
	first, _ := slices.BinarySearchFunc(m.hours, f.From/hour*hour, func(b block, from int64) int { return int(b.start - from) })
	for i := max(0, first-1); i < len(m.hours) && m.hours[i].start < f.To; i++ { // the one before tells the settings
		b, step := &m.hours[i], int64(minute)
		if f.Step%hour == 0 && (b.start >= f.until || b.start+hour <= f.until) {
			step = hour // nothing of the hour is left out, or all of it
		}
		k.visit(&u, b, step, func(r *Row) bool { f.add(r); return true })
	}
	for _, c := range m.open {
		if c.start < f.To {
			f.chunk(c, minute)
		}
	}
}

// Known reports whether anything is kept of a room.
func (k *Kept) Known(room string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, rooms := range k.nodes {
		if rooms[room] != nil && room != self {
			return true
		}
	}
	return false
}

// Since is when the first minute begins that is kept of a node, and until when the
// last one is that begins before to; false: there is none.
func (k *Kept) Since(node string, to int64) (from, until int64, left, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	of := k.nodes[node][self]
	if of == nil {
		return 0, 0, false, false
	}
	see := func(r *Row) bool {
		if !ok || r.At < from {
			from = r.At
		}
		if r.At < to && r.At+minute >= until {
			until, left = r.At+minute, r.Limit == goodbye
		}
		ok = true
		return true
	}
	var u unpacker
	if n := len(of.hours); n > 0 {
		k.visit(&u, &of.hours[0], minute, see)
		for i := n - 1; i >= 0; i-- {
			if of.hours[i].start < to {
				k.visit(&u, &of.hours[i], minute, see)
				break
			}
		}
	}
	for _, c := range of.open {
		_ = Decode(c.rows, c.start, minute, see) // written here
	}
	return from, until, left, ok && until > 0
}

// mark tells minutes of the same time apart: the rate in the node's own row is which
// of its lives it was, the limit says whether it was the last.
func (m *Minute) mark() Settings {
	for i := range m.Rows {
		if m.Rows[i].Room == self {
			return m.Rows[i].Row.Settings
		}
	}
	return Settings{}
}

// goodbye in the limit of a node's own row says that it left by itself.
const goodbye = 1

// Goodbye marks the last minute of a node that leaves.
func (m *Minute) Goodbye() {
	for i := range m.Rows {
		if m.Rows[i].Room == self {
			m.Rows[i].Row.Limit = goodbye
		}
	}
}

// Nodes are those that something is kept of.
func (k *Kept) Nodes() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	names := make([]string, 0, len(k.nodes))
	for n := range k.nodes {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Read returns the steps of a span in which a node ran, as rows of a room. live is
// that node, and nil for one whose minutes are kept for it.
// What began at before or later is left out.
func Read(live *Live, k *Kept, node, room string, s Span, before int64) []Row {
	f, up := newFold(s), newFold(s)
	f.until, up.until = before, before
	for _, of := range []struct {
		f    *fold
		name string
	}{{f, room}, {up, self}} {
		switch {
		case s.Step%minute == 0:
			k.read(node, of.name, of.f)
			if live == nil {
				continue
			}
			if r, ok := live.minuteOf(of.name); ok {
				of.f.add(&r)
			}
		case live != nil:
			live.read(of.name, of.f)
		}
	}
	return f.within(up)
}
