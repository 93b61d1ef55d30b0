package node

import (
	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/qpid"
)

// moved says where the places have gone that other nodes took over from this one
// while it was away, or from another after that. Somebody may come with an older
// ticket, of a home before: a second tab, or a browser that streams and whose
// cookie is older than what the stream brought. It finds the place by asking any
// node, since each passes it on to the home that the ticket names.
//
// An entry is kept for as long as a ticket lives after it was made or followed
// last. Past most of them the oldest are forgotten: older tickets of those places
// are then refused as expired.
//
// Invariant: every id in to is in order, once.
type moved struct {
	to    map[qpid.ItemID]movedTo
	order []movedAt // by at, but for entries that were followed since
}

type movedTo struct {
	home  eviction.Member
	gen   uint32
	until int64 // boot time
}

type movedAt struct {
	id qpid.ItemID
	at int64 // boot time at which to look at the entry
}

// movedMax bounds the entries of a room.
const movedMax = takenMax

// put notes that id is at home. Of two homes the one of the later generation counts, and
// of one generation the one that is heard of last: the place was back here meanwhile.
func (m *moved) put(id qpid.ItemID, to movedTo, most int) {
	old, known := m.to[id]
	if known && (old.gen > to.gen || old.gen == to.gen && old.until > 0) {
		if old.home == to.home && old.until > 0 { // whoever has an older ticket may have got it since
			old.until = max(old.until, to.until)
			m.to[id] = old
		}
		return
	}
	if m.to == nil {
		m.to = make(map[qpid.ItemID]movedTo)
	}
	m.to[id] = to
	if known {
		return
	}
	m.order = append(m.order, movedAt{id, to.until})
	for len(m.to) > most {
		delete(m.to, m.order[0].id)
		m.order = m.order[1:]
	}
}

// back forgets where id went: it is here again.
func (m *moved) back(id qpid.ItemID) {
	if to, known := m.to[id]; known {
		to.until = 0
		m.to[id] = to // expire forgets it, in its order
	}
}

// at is the home that id went to.
func (m *moved) at(id qpid.ItemID, now int64) (eviction.Member, bool) {
	to, known := m.to[id]
	return to.home, known && to.until > now
}

// on reports whether somebody else went on with a place that was here with generation gen.
func (m *moved) on(id qpid.ItemID, gen uint32) bool {
	to, known := m.to[id]
	return known && to.until > 0 && to.gen > gen
}

// follow returns the ticket that the home which has the place would know t by, at
// boot time now: with that home and generation. It keeps the entry until then. Of two homes
// of one generation this node, self, gave its copy up if it has an entry.
func (m *moved) follow(t Ticket, self eviction.Member, now, until int64) Ticket {
	to, known := m.to[t.ID]
	if !known || to.until <= now || to.gen < t.Gen || to.gen == t.Gen && t.Home != self {
		return t
	}
	if until > to.until {
		to.until = until
		m.to[t.ID] = to
	}
	t.Past = Homes{t.Home, t.Past[0]}
	t.Home, t.Gen = to.home, to.gen
	return t
}

// deadline is the boot time at which expire has something to do. It need not do it
// at once: entries go together that came within a moment.
func (m *moved) deadline() int64 {
	if len(m.order) == 0 {
		return ever
	}
	return m.order[0].at + slotMicros
}

// expire forgets entries whose time is over at boot time now.
func (m *moved) expire(now int64) {
	for len(m.order) > 0 && m.order[0].at <= now {
		first := m.order[0]
		m.order = m.order[1:]
		if to := m.to[first.id]; to.until > now {
			m.order = append(m.order, movedAt{first.id, to.until})
			continue
		}
		delete(m.to, first.id)
	}
	if len(m.to) == 0 {
		m.order = nil
	}
}
