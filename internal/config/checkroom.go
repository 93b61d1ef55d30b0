package config

import (
	"fmt"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/brand"
)

// roomsMax is how many rooms a node may have.
const roomsMax = 1000

func (f *File) checkRooms() {
	rooms := f.Config.Rooms
	if len(rooms) > roomsMax {
		f.wrong("rooms", "%d are more than the %d that a node may have; give the others nodes of their own", len(rooms), roomsMax)
	}
	if len(rooms) == 0 && len(f.Config.Queues) == 0 {
		f.warn("rooms", "none: this node serves only rooms that the others tell it of; list the rooms of the cluster")
	}
	names := map[string]int{}
	suffixes := map[string]int{}
	routes := map[Route]string{}
	for _, r := range f.others {
		for _, route := range r.Routes {
			routes[route.normal()] = "that of the room " + r.Name
		}
	}
	for i, r := range rooms {
		key := "rooms" + index(i)
		if first, ok := names[r.Name]; ok && r.Name != "" {
			f.fault(key+".name", "%q is the name of rooms[%d] too; give each room its own", r.Name, first)
		} else if first, ok := suffixes[r.suffix()]; ok && r.Name != "" {
			f.fault(key+".cookie_suffix", "%q is that of rooms[%d] too, so their cookies would replace each other; give each room its own", r.suffix(), first)
		}
		f.checkOthers(key, r)
		names[r.Name], suffixes[r.suffix()] = i, i
		if f.unread[key] {
			continue
		}
		f.checkRoom(key, r)
		f.checkRoutes(key, r, routes)
		f.checkRules(key, r)
		f.checkPage(key, r)
		f.checkEvents(key, r)
		f.checkCommands(key, r)
		f.checkEdge(key, r)
		f.checkHealth(key, r)
		f.checkOutflow(key, r)
		f.checkRoomPush(key, r)
	}
}

// suffix ends the names of the room's cookies.
func (r Room) suffix() string {
	if r.CookieSuffix != "" {
		return r.CookieSuffix
	}
	return r.Name
}

const (
	languagePattern = `^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$` // BCP 47, as far as its shape goes
	messageMax      = 1000                                  // bytes, as are the next
	titleMax        = 100
	aboutMax        = 2000
	timedMax        = 500 // of each of the messages
)

func (f *File) checkRoom(key string, r Room) {
	switch {
	case !f.given(key + ".name"):
		f.fault(key+".name", "missing; give the room a name, such as shop")
	case !matches(roomPattern, r.Name):
		f.fault(key+".name", "%q cannot stand in an address; give up to 64 letters, digits, - and _", r.Name)
	}
	if r.CookieSuffix != "" && !matches(roomPattern, r.CookieSuffix) {
		f.fault(key+".cookie_suffix", "%q cannot stand in the name of a cookie; give up to 64 letters, digits, - and _", r.CookieSuffix)
	}
	switch {
	case !matches(languagePattern, r.Language):
		f.fault(key+".default_template_language", "%q is no language tag; give one such as en, nl or pt-BR", r.Language)
	case !Speaks(r.Language):
		f.fault(key+".default_template_language", "the waiting page has no words in %q; give %s", r.Language, either(Languages()))
	}
	f.checkLooks(key, r)
	f.checkOrigin(key, r)
	f.checkNumbers(key, r)
	for _, w := range []struct {
		name, word string
		words      []string
	}{
		{"queueing_method", r.QueueingMethod, methods()},
		{"algorithm", r.Algorithm, algorithms()},
		{"on_partition", r.OnPartition, policies()},
	} {
		if !slices.Contains(w.words, w.word) {
			f.fault(key+"."+w.name, "%q; give %s", w.word, either(w.words))
		}
	}
	f.checkCore(key, r)
}

// checkLooks checks what a room's own words and color are, on its built-in page.
func (f *File) checkLooks(key string, r Room) {
	for _, t := range []struct {
		name, text string
		most       int
	}{{"message", r.Message, messageMax}, {"title", r.Title, titleMax}, {"description", r.Description, aboutMax}} {
		if len(t.text) > t.most {
			f.fault(key+"."+t.name, "%d bytes; give at most %d, it stands on every waiting page", len(t.text), t.most)
		}
	}
	f.checkMessages(key+".messages", r.Messages)
	if _, err := brand.ParseColor(r.Accent); err != nil && r.Accent != "" {
		f.fault(key+".accent", "%q is %v", r.Accent, err)
	}
	for _, p := range []struct{ name, picture string }{{"logo", string(r.Logo)}, {"favicon", string(r.Favicon)}} {
		if _, err := brand.ParsePicture(p.picture); err != nil && brand.IsDataURL(p.picture) {
			f.fault(key+"."+p.name, "it is %v", err)
		}
	}
	if _, err := brand.ParseText(r.Description); err != nil {
		f.fault(key+".description", "%v", err)
	}
}

func (f *File) checkMessages(key string, all []Message) {
	if n := len(all); n > brand.MessagesMax {
		f.fault(key, "%d messages; give at most %d. Those that have been read can be removed", n, brand.MessagesMax)
	}
	for i, m := range all {
		at := key + index(i)
		if m.At.IsZero() {
			f.fault(at+".at", "missing; give the time from which it is shown, such as 2026-11-27T18:00:00Z")
		}
		if n := len(m.Text); n == 0 || n > timedMax {
			f.fault(at+".text", "%d bytes; give 1 to %d", n, timedMax)
		}
	}
}

func (f *File) checkNumbers(key string, r Room) {
	free := r.Suspended || limitless(r.QueueingMethod)
	switch {
	case !f.given(key+".total_active_users") && !free:
		f.fault(key+".total_active_users", "missing; give how many people may be on the site at a time, about 75 %% of what it can bear")
	case r.TotalActiveUsers == 0 && !free:
		f.warn(key+".total_active_users", "0 lets nobody in: everyone waits until it is raised")
	}
	if !slices.Contains(statusCodes(), r.QueueingStatusCode) {
		f.fault(key+".queueing_status_code", "%d; give 200, 202, 429 or 503", r.QueueingStatusCode)
	}
	for _, d := range []struct {
		name string
		d    Duration
	}{
		{"session_duration", r.SessionDuration},
		{"refresh_interval", r.RefreshInterval},
		{"ticket_ttl", r.TicketTTL},
		{"claim_window", r.ClaimWindow},
	} {
		f.checkDuration(key+"."+d.name, d.d)
	}
	if r.SurvivorAfter != SurvivorAuto && Duration(r.SurvivorAfter) > durationMax {
		f.fault(key+".survivor_after", "%v; give auto, 0 for never, or a time up to %v", r.SurvivorAfter, durationMax)
	}
	for _, b := range []struct {
		name string
		n    int
	}{
		{"joins_per_address", r.JoinsPerAddress},
		{"places_per_address", r.PlacesPerAddress},
		{"streams_per_address", r.StreamsPerAddress},
	} {
		if b.n < 0 || b.n > countMax {
			f.fault(key+"."+b.name, "%d; give 0 for no bound, or a number up to %d", b.n, countMax)
		}
	}
	if r.SessionMax < 0 || r.SessionMax > durationMax {
		f.fault(key+".session_max", "%v; give 0 for no bound, or a time up to %v such as 1h", r.SessionMax, durationMax)
	}
	if r.ClaimsMax < 1 || r.ClaimsMax > eviction.ClaimsMost {
		f.fault(key+".claims_max", "%d; give how often somebody may be called and not come before they go to the end, 1 to %d", r.ClaimsMax, eviction.ClaimsMost)
	}
	if r.QueueMax < 1 {
		f.fault(key+".queue_max", "%d; give how many people may wait at one node, 1 or more", r.QueueMax)
	}
}

// checkCore asks the core, which knows best what it can work with. Its errors
// begin with the room and the key. Values that are wrong already are kept from
// it.
func (f *File) checkCore(key string, r Room) {
	fields, defaults := fieldsOf(reflect.ValueOf(&r).Elem()), DefaultRoom()
	for name, v := range fieldsOf(reflect.ValueOf(&defaults).Elem()) {
		if f.blamed(join(key, name)) {
			fields[name].Set(v)
		}
	}
	r.Events = nil // see checkEvents
	for _, err := range split(r.Eviction().Validate()) {
		text := strings.TrimPrefix(err.Error(), fmt.Sprintf("room %q: ", r.Name))
		at, why, _ := strings.Cut(text, ": ")
		if _, ok := fields[at]; !ok {
			at, why, _ = strings.Cut(text, " ")
		}
		f.fault(join(key, at), "%s", why)
	}
}

func (f *File) checkOrigin(key string, r Room) {
	if r.Origin == "" {
		return
	}
	at := key + ".origin"
	u, err := url.Parse(r.Origin)
	switch {
	case err != nil:
		f.fault(at, "no address of a site; give one such as http://127.0.0.1:9000") // err repeats it, password and all
	case u.User != nil:
		f.fault(at, "has a user name in it, which is not passed on; leave it out")
	case u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()):
		f.fault(at, "%q is no address of a site; give one such as http://127.0.0.1:9000", r.Origin)
	case u.RawQuery != "" || u.Fragment != "":
		f.fault(at, "%q has a ? or # part; leave it out", r.Origin)
	case len(r.Routes) == 0:
		f.fault(key+".routes", "missing, so nobody gets to the origin; give one such as [{host: shop.example.com, path: /}], or host \"*\" for all")
	}
}

// checkRoutes checks the routes of a room and that no other has the same: of
// two that match, the longer path wins, so equal ones would be a coin toss.
func (f *File) checkRoutes(key string, r Room, taken map[Route]string) {
	for i, route := range r.Routes {
		at := key + ".routes" + index(i)
		if f.unread[at] {
			continue
		}
		if h := route.Host; h != "*" && !validHost(h) {
			f.fault(at+".host", "%q is no host name; give one such as shop.example.com without scheme or port, or \"*\" for any", h)
		}
		p := route.Path
		switch {
		case !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#*\\ "):
			f.fault(at+".path", "%q is no path; give one such as /tickets, or / for the whole site, without *, ? or #", p)
			continue
		case path.Clean(p) != p && path.Clean(p)+"/" != p:
			f.fault(at+".path", "%q never comes in this form; write %s", p, path.Clean(p))
			continue
		case within(p, f.Config.Prefix):
			f.fault(at+".path", "%q is below prefix %s, which is for our own pages; give another path, or another prefix", p, f.Config.Prefix)
			continue
		}
		if other, ok := taken[route.normal()]; ok {
			f.fault(at, "%s%s is %s too; give each route to one room", route.Host, p, other)
		}
		taken[route.normal()] = at
	}
}

// normal is the same for routes that match the same requests.
func (r Route) normal() Route {
	r.Host = strings.TrimSuffix(strings.ToLower(r.Host), ".")
	if r.Path != "/" {
		r.Path = strings.TrimSuffix(r.Path, "/")
	}
	return r
}

func within(p, prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") }

// The words of a room, in the order of the core's constants.
func methods() []string    { return []string{"fifo", "random", "passthrough", "reject"} }
func algorithms() []string { return []string{"cut", "qpid"} }
func policies() []string   { return []string{"majority", "share", "stop"} }
func statusCodes() []int   { return []int{200, 202, 429, 503} }

func either(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// Eviction is what the core has to know of the room.
func (r Room) Eviction() eviction.Room {
	method := eviction.Method(max(slices.Index(methods(), r.QueueingMethod), 0))
	if r.Suspended {
		method = eviction.Passthrough
	}
	return eviction.Room{
		Name:         r.Name,
		Target:       r.TotalActiveUsers,
		NewPerMinute: r.NewUsersPerMinute,
		Session:      r.SessionDuration.value(),
		NoRenewal:    !r.SessionRenewal,
		SessionMax:   r.SessionMax.value(),
		Method:       method,
		QueueAll:     r.QueueAll,
		Refresh:      r.RefreshInterval.value(),
		TicketTTL:    r.TicketTTL.value(),
		ClaimWindow:  r.ClaimWindow.value(),
		ClaimsMax:    r.ClaimsMax,
		Algorithm:    eviction.Algorithm(max(slices.Index(algorithms(), r.Algorithm), 0)),
		OnPartition:  eviction.Policy(max(slices.Index(policies(), r.OnPartition), 0)),
		Survivor:     r.SurvivorAfter.value(),
		QueueMax:     r.QueueMax,
		Events:       r.events(),
	}
}
