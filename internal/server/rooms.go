package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/admin"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/peraddress"
	"github.com/anteroom/anteroom/internal/rules"
)

// settings are what a gateway must know of a room. They travel with the room's
// configuration, so that a node needs no file to serve the rooms of its cluster.
type settings struct {
	Routes       []gateway.Route `json:"routes,omitempty"`
	Origin       string          `json:"origin,omitempty"`
	StatusCode   int             `json:"queueing_status_code,omitempty"`
	CookieSuffix string          `json:"cookie_suffix,omitempty"`
	Language     string          `json:"default_template_language,omitempty"`
	Message      string          `json:"message,omitempty"`
	Brand        gateway.Brand   `json:"brand,omitzero"`
	Logo         string          `json:"logo,omitempty"` // its sum, as of a custom page
	Icon         string          `json:"favicon,omitempty"`
	ConfirmEntry bool            `json:"confirm_entry,omitempty"`
	Bookmark     bool            `json:"bookmark,omitempty"`
	Push         bool            `json:"push,omitempty"`
	Suspended    bool            `json:"suspended,omitempty"`

	BypassRules []rules.Rule        `json:"bypass_rules,omitempty"`
	IPLists     map[string][]string `json:"ip_lists,omitempty"`

	Cookie     gateway.Cookie    `json:"cookie_attributes,omitzero"`
	CustomPage string            `json:"custom_page,omitempty"` // its sum, see customPages
	EventPages map[string]string `json:"event_pages,omitempty"` // sums, by event

	IgnoreOrigin bool `json:"ignore_origin_commands,omitempty"`

	PerAddress *peraddress.Limits `json:"per_address,omitempty"` // nil: the defaults, as where a node of before has put the room together

	AWS bool `json:"aws_api,omitempty"`

	CORS              *gateway.CORS `json:"cors,omitempty"` // nil: as by default
	PreflightToOrigin bool          `json:"preflight_to_origin,omitempty"`
	Upgrades          []string      `json:"upgrades,omitzero"` // nil: as by default
	StrictPaths       bool          `json:"strict_paths,omitempty"`

	Health *originHealth `json:"health,omitempty"` // of no file

	// Rest are keys of the room in a file that nothing else here tells, so that an
	// operator reads what was written.
	Rest map[string]json.RawMessage `json:"rest,omitempty"`
}

// in puts s into a room that travels.
func (s settings) in(r eviction.Room) eviction.Room {
	text, _ := json.Marshal(s) // strings and numbers
	r.Settings = string(text)
	return r
}

// roomOf is a room of a file, as the cluster carries it.
func roomOf(r config.Room) eviction.Room {
	s := settings{
		Origin: r.Origin, StatusCode: r.QueueingStatusCode, CookieSuffix: r.CookieSuffix, Language: r.Language, Message: r.Message,
		Brand: gateway.Brand{Title: r.Title, Accent: r.Accent, Description: r.Description}, ConfirmEntry: r.ConfirmEntry, Bookmark: r.Bookmark, Push: r.Push,
		Suspended: r.Suspended, IgnoreOrigin: !r.Commands(config.Revoke), AWS: r.AWSAPI,
		CORS: corsOf(r.CORS), PreflightToOrigin: r.PreflightToOrigin(), StrictPaths: r.StrictPaths,
	}
	if !slices.Equal(r.Upgrades, config.DefaultRoom().Upgrades) {
		s.Upgrades = append([]string{}, r.Upgrades...)
	}
	for _, a := range r.Routes {
		s.Routes = append(s.Routes, gateway.Route{Host: a.Host, Path: a.Path})
	}
	s.BypassRules, s.IPLists = r.Rules()
	if l := limitsOf(r); l != limitsOf(config.DefaultRoom()) {
		s.PerAddress = &l
	}
	s.Cookie, s.CustomPage, s.EventPages = cookieOf(r), sumOfPage(r.CustomPageHTML), eventPages(r)
	s.Logo, s.Icon = sumOfPicture(r.Logo), sumOfPicture(r.Favicon)
	room := s.in(r.Eviction())
	base, _ := configOf(room) // which can be read: it was written just now
	s.Rest = config.Rest(base, r.WithoutEventPages())
	if delete(s.Rest, "ip_lists"); len(s.Rest) == 0 { // lists that no rule asks for do not travel
		return room
	}
	return s.in(room)
}

// corsOf is what the gateway must know; nil: that no other site's scripts are let in.
func corsOf(c config.CORS) *gateway.CORS {
	if len(c.Origins) == 0 {
		return nil
	}
	return &gateway.CORS{Origins: c.Origins, Methods: c.Methods, Headers: c.Headers, Credentials: c.Credentials, MaxAge: time.Duration(c.MaxAge)}
}

// limitsOf are the bounds of what one address may have of a room.
func limitsOf(r config.Room) peraddress.Limits {
	return peraddress.Limits{Joins: r.JoinsPerAddress, Places: r.PlacesPerAddress, Active: int(r.ActivePerAddress), Streams: r.StreamsPerAddress}
}

// configOf is a room of the cluster, as a file would have it. A page of its own is
// not in it.
func configOf(r eviction.Room) (config.Room, error) {
	c := config.FromEviction(r)
	s, err := settingsOf(r)
	if err != nil {
		return c, err
	}
	if c.Suspended = s.Suspended; s.Suspended {
		c.QueueingMethod = config.DefaultRoom().QueueingMethod
	}
	c.Origin, c.QueueingStatusCode, c.CookieSuffix, c.Language, c.Message = s.Origin, s.StatusCode, s.CookieSuffix, s.Language, s.Message
	c.Title, c.Accent, c.Description, c.ConfirmEntry = s.Brand.Title, s.Brand.Accent, s.Brand.Description, s.ConfirmEntry
	c.Bookmark, c.Push = s.Bookmark, s.Push
	if l := s.PerAddress; l != nil {
		c.JoinsPerAddress, c.PlacesPerAddress, c.ActivePerAddress, c.StreamsPerAddress = l.Joins, l.Places, config.Share(l.Active), l.Streams
	}
	for _, a := range s.Routes {
		c.Routes = append(c.Routes, config.Route{Host: a.Host, Path: a.Path})
	}
	for i, b := range s.BypassRules {
		if c.SearchEngines = i == len(s.BypassRules)-1 && b == rules.Crawlers(); !c.SearchEngines {
			c.BypassRules = append(c.BypassRules, config.BypassRule{Description: b.Description, Expression: b.Expression, Action: rules.Bypass, Enabled: !b.Disabled})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.IPLists)) {
		c.IPLists = append(c.IPLists, config.IPList{Name: name, Items: s.IPLists[name]})
	}
	c.CookieAttributes.SameSite = cmp.Or(s.Cookie.SameSite, c.CookieAttributes.SameSite)
	c.CookieAttributes.Secure = cmp.Or(s.Cookie.Secure, c.CookieAttributes.Secure)
	if o := s.CORS; o != nil {
		list := func(l []string) []string { return append([]string{}, l...) }
		c.CORS = config.CORS{Origins: list(o.Origins), Methods: list(o.Methods), Headers: list(o.Headers), Credentials: o.Credentials, MaxAge: config.Duration(o.MaxAge)}
	}
	if s.PreflightToOrigin {
		c.Preflight = "origin"
	}
	if s.Upgrades != nil {
		c.Upgrades = s.Upgrades
	}
	c.StrictPaths = s.StrictPaths
	return c.With(s.Rest)
}

// withPageOf gives a room the page that it has in the cluster already.
func withPageOf(r, running eviction.Room) eviction.Room {
	s, err := settingsOf(r)
	old, errOld := settingsOf(running)
	if err != nil || errOld != nil {
		return r
	}
	s.CustomPage, s.EventPages, s.Logo, s.Icon = old.CustomPage, old.EventPages, old.Logo, old.Icon
	return s.in(r)
}

// settingsOf reads what the cluster carries with a room.
func settingsOf(r eviction.Room) (s settings, err error) {
	if r.Settings == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(r.Settings), &s); err != nil {
		return s, fmt.Errorf("room %q: its settings cannot be read: %w; is a node of another version in the cluster?", r.Name, err)
	}
	return s, nil
}

// errRules is about rules that are left out of a room, which can be served: who
// would meet them waits.
var errRules = errors.New("bypass rules that cannot be read are left out")

func (s *settings) rules() (*rules.Set, error) {
	if len(s.BypassRules) == 0 {
		return nil, nil
	}
	var errs []error
	lists := rules.Lists{}
	for name, items := range s.IPLists {
		l, err := rules.NewList(items)
		if err != nil {
			errs = append(errs, fmt.Errorf("list %s: %w", name, err))
			continue
		}
		lists[name] = l
	}
	set, err := rules.NewSet(s.BypassRules, lists)
	if err = errors.Join(append(errs, err)...); err != nil {
		return set, fmt.Errorf("%w: %w", errRules, err)
	}
	return set, nil
}

// Rooms are the rooms of a file, as a gateway knows them.
func Rooms(c config.Config) ([]gateway.Room, error) {
	rooms := make([]gateway.Room, len(c.Rooms))
	for i, r := range c.Rooms {
		var err error
		if rooms[i], err = gatewayRoom(roomOf(r)); err != nil {
			return nil, err
		}
	}
	return rooms, nil
}

// gatewayRoom is a room of the cluster, as the gateway knows it.
func gatewayRoom(r eviction.Room) (gateway.Room, error) {
	s, err := settingsOf(r)
	if err != nil {
		return gateway.Room{}, err
	}
	g := gateway.Room{
		Name: r.Name, Routes: s.Routes, StatusCode: s.StatusCode, CookieSuffix: s.CookieSuffix, Language: s.Language, Message: s.Message,
		Brand: s.Brand, ConfirmEntry: s.ConfirmEntry, Bookmark: s.Bookmark, Push: s.Push, Suspended: s.Suspended, Cookie: s.Cookie, IgnoreOrigin: s.IgnoreOrigin, AWS: s.AWS,
		PreflightToOrigin: s.PreflightToOrigin, Upgrades: s.Upgrades, StrictPaths: s.StrictPaths,
	}
	if s.CORS != nil {
		g.CORS = *s.CORS
	}
	if s.Origin != "" {
		u, err := url.Parse(s.Origin)
		if err != nil {
			return g, fmt.Errorf("room %q: origin: %w", r.Name, err)
		}
		g.Origin = u
	}
	c, err := configOf(r)
	if err != nil {
		return g, fmt.Errorf("room %q: %w", r.Name, err)
	}
	g.Messages = messagesOf(c)
	g.Bypass, err = s.rules()
	if err != nil {
		return g, fmt.Errorf("room %q: %w", r.Name, err)
	}
	return g, nil
}

// messagesOf are the room's messages in the order of their times.
func messagesOf(c config.Room) (all []gateway.Message) {
	for _, m := range c.Messages {
		at := time.Time(m.At).UTC()
		all = append(all, gateway.Message{At: &at, Text: m.Text})
	}
	slices.SortStableFunc(all, func(a, b gateway.Message) int { return a.At.Compare(*b.At) })
	return all
}

// followRooms gives the gateway the rooms that the cluster runs with, when they
// have changed.
func (s *Server) followRooms() {
	snapshot := s.loop.Snapshot()
	now := make([]eviction.Room, len(snapshot.Rooms))
	for i := range snapshot.Rooms {
		now[i] = snapshot.Rooms[i].Now
	}
	defer s.settle(snapshot)
	same := func(a, b eviction.Room) bool {
		return a.Name == b.Name && a.Version == b.Version && a.Settings == b.Settings && a.Event.Name == b.Event.Name
	}
	if fresh := s.pages.fresh(); slices.EqualFunc(now, s.rooms, same) && !fresh {
		return
	}
	s.heard(s.rooms, now)
	s.tell(s.rooms, now)
	rooms, limits := make([]gateway.Room, 0, len(now)), make(map[string]peraddress.Limits, len(now))
	challenges := make(map[string]string)
	for _, r := range now {
		if r.Mode == eviction.Deleted {
			continue
		}
		g, err := gatewayRoom(r)
		switch {
		case errors.Is(err, errRules):
			s.log.Error("a room is served without some of its rules, so that who would meet them waits", "err", err)
		case err != nil:
			s.log.Error("a room cannot be served", "err", err)
			continue
		}
		limits[r.Name] = limitsOf(config.DefaultRoom())
		if c, err := configOf(r); err == nil {
			limits[r.Name] = limitsOf(c)
			g.Watch = watchOf(c)
			if c.Challenge != "" && !c.Suspended {
				challenges[r.Name] = c.Challenge
			}
		}
		g.Page = s.pages.of(r)
		g.Logo, g.Icon = s.pages.pictures(r)
		rooms = append(rooms, g)
	}
	s.addresses.SetRooms(limits)
	s.challenge.SetRooms(challenges)
	if len(challenges) > 0 && s.c.Security.ChallengeKey.Empty() {
		s.log.Error("rooms ask for a challenge, and this node has no security.challenge_key: nobody can join them here; give it the key of the other nodes")
	}
	if err := s.gateway.SetRooms(rooms); err != nil {
		s.log.Error("the rooms of the cluster cannot be served", "err", err)
	}
	s.limits.gateway.Resize(s.share.Gateway(slices.ContainsFunc(rooms, func(r gateway.Room) bool { return r.Origin != nil })))
	s.origins.follow(now)
	s.outflow.follow(now)
	s.rooms = now
	s.pages.keep(now)
	s.hasRooms.Store(len(now) > 0)
}

// otherwise returns r as the cluster would carry it, and reports whether it runs
// with another room of that name, or with none.
func otherwise(r config.Room, running *node.RoomStatus) (eviction.Room, bool) {
	next := roomOf(r).WithDefaults()
	if running == nil {
		return next, true
	}
	next.Reclaimed = running.Room.Reclaimed // no file has them, nor what follows
	next = carryHealth(next, running.Room)
	next = next.KeepSeeds(&running.Room)
	return next, running.Room.Sum() != next.Sum()
}

// deleted is what the log is told of a room of a file that an operator deleted.
const deleted = "an operator has deleted this room of the file, and it stays deleted; " +
	"take it out of the file, or bring it back with: anteroom rooms apply -f FILE"

// compareRooms tells of rooms that the cluster has otherwise than this node's
// file: what it runs with counts, and whoever changed the file may think that a
// restart was enough. It returns those of which no wave has spoken here yet.
func (s *Server) compareRooms(unseen []config.Room) []config.Room {
	snapshot := s.loop.Snapshot()
	return slices.DeleteFunc(unseen, func(r config.Room) bool {
		running, ok := snapshot.Room(r.Name)
		if !ok || running.Account.Born == 0 { // the wave that opens an account brings the room as well
			return false
		}
		if running.Room.Mode == eviction.Deleted {
			s.log.Warn(deleted, "room", r.Name)
		} else if _, other := otherwise(r, running); other {
			s.log.Warn("the cluster has this room otherwise than this node's file, and goes on with its own; "+
				"SIGHUP to this node, or systemctl reload, gives it the file's", "room", r.Name)
		}
		return true
	})
}

// SetRooms makes the rooms of a file those of the cluster, from the next wave
// on. Nobody loses a place. A room that is not in the file stays as it is, and so
// does what an operator did by hand: a deleted room stays deleted.
func (s *Server) SetRooms(rooms []config.Room) error {
	s.edits.Lock()
	defer s.edits.Unlock()
	s.pages.learn(rooms)
	var errs []error
	for _, r := range rooms {
		running, _ := s.loop.Snapshot().Room(r.Name)
		if running != nil && running.Room.Mode == eviction.Deleted {
			s.log.Warn(deleted, "room", r.Name)
			continue
		}
		next, other := otherwise(r, running)
		if !other {
			continue
		}
		if err := bothWays(next); err != nil {
			errs = append(errs, fmt.Errorf("room %q: %w", r.Name, err))
			continue
		}
		if err := s.loop.SetRoom(next); err != nil {
			return err
		}
		old := eviction.Room{}
		if running != nil {
			old = running.Room
		}
		s.audits.add(admin.AuditEntry{At: time.Now().UTC(), Who: "sighup", Action: actionOf(old, next), Room: r.Name, Changes: changesOf(old, next)})
	}
	return errors.Join(errs...)
}

// settle notes of which rooms this node has the cluster's configuration.
func (s *Server) settle(snapshot *loop.Snapshot) {
	for i := range snapshot.Rooms {
		if r := &snapshot.Rooms[i]; r.Account.Born > 0 {
			s.settled[r.Room.Name] = true
		}
	}
}
