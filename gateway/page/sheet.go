package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"time"

	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/internal/brand"
	"github.com/anteroom/anteroom/internal/ticket"
)

// random is the method in which nobody has a position.
const random = "random"

// startLayout tells the day as well, in the way that all languages read.
const startLayout = "2006-01-02 15:04"

// sheet is what the template fills in: a View in one language.
type sheet struct {
	*language
	View gateway.View
	CSS  template.CSS
	JS   template.JS
	Live template.JS
	Data template.JS

	Masthead           string
	Logo, Icon         template.URL // empty: the masthead is text
	QR                 template.URL // empty: there is none
	Left               string       // for how long a link works; empty: that is not told
	Title, Lead, How   string
	Place              string       // empty: not known
	Standing           string       // which of wait and place is the large one
	About              []brand.Part // what people wait for
	Queued, Wait, Note string
	Updated, UpdatedAt string // for people and for machines
	Button             string // of a link to where the visitor wanted to go
	Take               string // of the form that takes the place in the address over
	Waiting, Random    bool
	Said, Before       []said // the operator's messages: what is to be read now, and what was
	Kept               string // how long a place is kept for who goes away; empty: that is not told
	Early              bool   // the doors are not open yet
	NoPlace            bool   // there are no places: in a draw, and before one
	Reloads            bool   // without a script
}

// said is a message of the operator.
type said struct{ At, Text string }

// state is the answer to a check-in as the gateway's API gives it, as far as
// the script reads it. The page carries one, so that the script starts from
// what the page shows.
type state struct {
	State       string       `json:"state"`
	Position    int          `json:"position"`
	Queued      int          `json:"queued"`
	Wait        *estimate    `json:"estimated_wait_seconds"`
	Refresh     int          `json:"refresh_interval_seconds"`
	JoinedAt    time.Time    `json:"joined_at"`
	LastUpdated time.Time    `json:"last_updated"`
	CountedAt   time.Time    `json:"counted_at,omitzero"`
	Method      string       `json:"queueing_method"`
	Why         string       `json:"why,omitempty"`
	Paused      ticket.Pause `json:"paused_code,omitempty"`
	HeldUntil   time.Time    `json:"held_until,omitzero"`
	StartsAt    time.Time    `json:"starts_at,omitzero"`
	Draw        *drawn       `json:"draw,omitempty"`

	Messages []gateway.Message `json:"messages,omitempty"`
}

// drawn is what the script reads of a draw.
type drawn struct {
	Seed string `json:"seed,omitempty"`
}

type estimate struct {
	P25 int `json:"p25"`
	P50 int `json:"p50"`
	P75 int `json:"p75"`
}

// data is what else the script needs to know.
type data struct {
	Room    string                  `json:"room"`
	Lead    string                  `json:"lead"`
	Method  string                  `json:"method"`
	Here    string                  `json:"here"`
	Retry   string                  `json:"retry"`
	Stream  string                  `json:"stream"`
	CheckIn string                  `json:"checkin"`
	Leave   string                  `json:"leave"`
	Claim   int                     `json:"claim"` // seconds
	Confirm bool                    `json:"confirm,omitempty"`
	Reasons map[ticket.Pause]string `json:"reasons"`
	Why     string                  `json:"why,omitempty"` // this is not the place that it was
	Now     state                   `json:"now"`
}

func newSheet(p *Pages, l *language, v gateway.View) (*sheet, error) {
	s := &sheet{
		language: l, View: v, Logo: template.URL(v.LogoURL), Icon: template.URL(cmp.Or(v.IconURL, "data:,")), CSS: p.css + accent(v.Brand.Accent), Masthead: cmp.Or(v.Brand.Title, v.Room),
		Reloads: v.RefreshSeconds > 0, Waiting: v.Kind == gateway.PageWaiting,
	}
	s.read(v.Messages)
	if !s.Waiting {
		return s, s.other(v)
	}
	s.Random = v.Method == random
	kind, live := "fifo.", l.live[0]
	if s.Random {
		kind, live = "random.", l.live[1]
	}
	if !v.InAddress { // else there is nothing that the script could ask
		s.JS, s.Live = p.js, template.JS(live)
	}
	s.Title, s.Lead, s.How = l.say(kind+"title"), l.lead(v.Why, l.say(kind+"lead")), l.say(kind+"how")
	if v.Draw != nil {
		s.How = l.say("random.how")
	}
	if s.Early = v.StartsAt.After(v.LastUpdated); s.Early {
		s.Lead = l.say("starts.lead")
	}
	s.NoPlace = s.Random || s.Early && v.Position == 0
	if v.Paused != "" {
		v.Wait.Known = false // it is for a line that moves
	}
	if v.Position > 0 {
		s.Place = l.number(v.Position)
	}
	switch {
	case s.Random:
	case v.Wait.Known:
		s.Standing = "known"
	default:
		s.Standing = "place"
	}
	s.About, _ = brand.ParseText(v.Brand.Description) // what was checked can be read
	s.Queued, s.Wait = l.number(v.Queued), l.wait(v.Wait, v.Method)
	counted := v.LastUpdated
	if !v.CountedAt.IsZero() {
		counted = v.CountedAt
	}
	s.Updated, s.UpdatedAt = utc(counted, l.Clock), counted.UTC().Format(time.RFC3339)
	s.Note, s.Kept = p.note(l, v), l.kept(v.Kept)
	var err error
	s.Data, err = p.data(v, l.say(kind+"lead"))
	return s, err
}

// read takes in the operator's messages: the one that always stands and the newest
// are read by everybody, those of before by who wants to. The script has its twin.
func (s *sheet) read(all []gateway.Message) {
	now := 1
	for i, m := range all {
		t := said{Text: m.Text}
		if m.At != nil {
			t.At = utc(*m.At, startLayout)
		} else {
			now = 2
		}
		if i < now {
			s.Said = append(s.Said, t)
		} else {
			s.Before = append(s.Before, t)
		}
	}
}

// other fills in the pages without a place in line.
func (s *sheet) other(v gateway.View) error {
	l := s.language
	switch v.Kind {
	case gateway.PageCalled:
		s.Title, s.Lead, s.Button, s.Reloads = l.say("turn"), l.say("turn.lead"), l.say("enter"), false
		if v.InAddress {
			s.Lead, s.Button, s.Take = l.say("cookies.enter"), "", s.Button
		}
		return nil
	case gateway.PageLinked, gateway.PageTake:
		s.Button, s.Take = l.say("linked.own"), l.say("linked.take")
	case gateway.PageTransfer, gateway.PageBookmark:
		s.Button, s.QR, s.Reloads = l.say("transfer.back"), template.URL(v.QR), false
		if left := v.LinkUntil.Sub(v.LastUpdated); left > 0 {
			s.Left = l.count("minutes", max(1, int((left+time.Minute/2)/time.Minute)))
		}
	case gateway.PageMoved:
		s.Button = l.say("linked.own")
	case gateway.PageLinkOver:
	case gateway.PageLeft:
		s.Button = l.say("rejoin")
	case gateway.PageFull, gateway.PageClosed, gateway.PageCookies, gateway.PageBusy, gateway.PageNetwork, gateway.PageUnavailable, gateway.PageOriginDown:
		s.Button = l.say("retry")
	default:
		return fmt.Errorf("page: no page of kind %q", v.Kind)
	}
	s.Title, s.Lead = l.say(string(v.Kind)+".title"), l.say(string(v.Kind)+".text")
	if v.HereURL == "" {
		s.Button = ""
	}
	return nil
}

// note says why nobody goes in, if nobody does.
func (p *Pages) note(l *language, v gateway.View) string {
	switch {
	case v.StartsAt.After(v.LastUpdated):
		return l.say("starts", "{time}", utc(v.StartsAt, startLayout))
	case v.HeldUntil.After(v.LastUpdated):
		return l.say("held", "{time}", utc(v.HeldUntil, l.Clock))
	case v.Paused == "":
		return ""
	case v.Paused == ticket.PausedAddress: // rare: the script shows what it finds in the page, so that not every page has to carry it
		return l.say("network.held")
	case v.Paused == ticket.PausedUnhealthy: // as rare
		return l.say("paused") + " " + l.say("paused.unhealthy")
	}
	key := p.reasons[v.Paused]
	switch {
	case key == "":
		return l.say("paused")
	case allSaid(key):
		return l.say(key)
	}
	return l.say("paused") + " " + l.say(key)
}

// data puts down where the script starts from. The lead is the one for open doors,
// without what limits the flow.
func (p *Pages) data(v gateway.View, lead string) (template.JS, error) {
	d := data{
		Room: v.Room, Lead: lead, Method: v.Method, Here: v.HereURL, Retry: v.RefreshURL, Stream: v.StreamURL, CheckIn: v.CheckInURL, Leave: v.LeaveURL,
		Claim: int(v.Claim.Seconds()), Confirm: v.Confirm, Reasons: p.reasons,
		Now: state{
			State: "waiting", Position: v.Position, Queued: v.Queued, Refresh: v.RefreshSeconds, JoinedAt: v.JoinedAt,
			LastUpdated: v.LastUpdated, CountedAt: v.CountedAt, Method: v.Method, Why: v.Why, Paused: v.Paused, HeldUntil: v.HeldUntil, StartsAt: v.StartsAt,
			Messages: v.Messages,
		},
	}
	if v.Missed {
		d.Why = gateway.MissedCalls
	}
	if v.Draw != nil {
		d.Now.Draw = &drawn{v.Draw.Seed}
	}
	if v.Wait.Known {
		d.Now.Wait = &estimate{v.Wait.P25, v.Wait.P50, v.Wait.P75}
	}
	b, err := json.Marshal(d) // escapes <, > and &: safe inside a script element
	return template.JS(b), err
}

// What the template calls.

// Tab is the title of the browser's tab.
func (s *sheet) Tab() string {
	if s.Place == "" {
		return s.Title
	}
	return s.count("tab", s.View.Position, "{title}", s.Title)
}

// Code is the language's tag.
func (s *sheet) Code() string { return s.tag.String() }

// Say and Count are for words that a View does not change.
func (s *sheet) Say(key string) string { return s.say(key) }

// Count puts a number in.
func (s *sheet) Count(key string, n int) string { return s.count(key, n) }
