package server

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
)

// auditMax bounds the changes that a node remembers. The log has all of them.
const auditMax = 500

// newsFor is how old a change may be of which a node hears that has not had the
// room before.
const newsFor = 30 * time.Second

// audits are the last changes of rooms that this node knows of.
type audits struct {
	log *slog.Logger

	mu   sync.Mutex
	last []admin.AuditEntry // the oldest first
}

func (a *audits) add(e admin.AuditEntry) {
	args := []any{"who", e.Who, "action", e.Action, "room", e.Room}
	if e.From != "" {
		args = append(args, "from", e.From)
	}
	for _, c := range e.Changes {
		args = append(args, slog.String("change."+c.Key, c.From+" -> "+c.To))
	}
	a.log.Info("audit", args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) == auditMax {
		a.last = slices.Delete(a.last, 0, 1)
	}
	a.last = append(a.last, e)
}

// list returns them, the newest first.
func (a *audits) list() []admin.AuditEntry {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]admin.AuditEntry, 0, len(a.last))
	for _, e := range slices.Backward(a.last) {
		all = append(all, e)
	}
	return all
}

// modeOf says who has held, drained or released a room last, and when, as far as
// this node remembers.
func (a *audits) modeOf(room string) (who string, since *time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range slices.Backward(a.last) {
		if e.Room == room && slices.ContainsFunc(e.Changes, func(c admin.Change) bool { return c.Key == "mode" }) {
			return e.Who, &e.At
		}
	}
	return "", nil
}

// changesOf lists what differs between two configurations of a room. Of a new one
// it lists what has not its default.
func changesOf(a, b eviction.Room) []admin.Change {
	changes := []admin.Change{}
	add := func(key string, from, to any) {
		if x, y := fmt.Sprint(from), fmt.Sprint(to); x != y {
			changes = append(changes, admin.Change{Key: key, From: x, To: y})
		}
	}
	if b.Mode != eviction.Deleted {
		from := config.DefaultRoom()
		if a.Name != "" && a.Mode != eviction.Deleted && a.Version != (eviction.Version{}) {
			from, _ = configOf(a)
		}
		to, _ := configOf(b)
		for _, c := range config.Changes(from, to) {
			changes = append(changes, admin.Change(c))
		}
		x, _ := settingsOf(a)
		y, _ := settingsOf(b)
		add("custom_page", x.CustomPage, y.CustomPage)
		add("logo", x.Logo, y.Logo)
		add("favicon", x.Icon, y.Icon)
	}
	add("mode", byHand(a), byHand(b))
	x, y := healthOf(a), healthOf(b)
	add("origin_health", admin.HealthText(string(x.status())), admin.HealthText(string(y.status())))
	add("origin_holds", x.Holds, y.Holds)
	add("reclaimed", a.Reclaimed, b.Reclaimed)
	return changes
}

// heard adds to the audit log what was changed at other nodes, by what the
// gateway had of the rooms so far. It is called with every new set of them.
func (s *Server) heard(before, now []eviction.Room) {
	for _, r := range now {
		i := slices.IndexFunc(before, func(o eviction.Room) bool { return o.Name == r.Name })
		old := eviction.Room{}
		if i >= 0 {
			old = before[i]
		}
		at := time.UnixMicro(int64(r.Version.Stamp)).UTC()
		news := s.settled[r.Name] || time.Since(at) < newsFor // else this node was away, or has just started
		if !news || r.Version.Compare(old.Version) <= 0 || r.Version.By == s.self.Name {
			continue
		}
		if changes := changesOf(old, r); len(changes) > 0 {
			s.audits.add(admin.AuditEntry{At: at, Who: "node " + string(r.Version.By), Action: actionOf(old, r), Room: r.Name, Changes: changes})
		}
	}
}

func actionOf(old, r eviction.Room) string {
	switch {
	case r.Mode == eviction.Deleted:
		return "delete"
	case old.Name == "" || old.Mode == eviction.Deleted || old.Version == eviction.Version{}:
		return "create"
	case byHand(r) == byHand(old):
		return "update"
	case byHand(r) == eviction.Held:
		return "hold"
	case byHand(r) == eviction.Draining:
		return "drain"
	default:
		return "release"
	}
}
