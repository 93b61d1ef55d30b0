package shop

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed shop.html
var pages string

// Headers by which an origin and the gateway speak.
const (
	passHeader    = "X-Anteroom-Pass"
	commandHeader = "Anteroom-Command"
	revoke        = "revoke"
)

// basketCookie holds the names of teas, with dots between. The shop keeps
// nothing of its own about a visitor, so any number of shops may stand in a row.
const basketCookie = "basket"

// basketMax is how many teas fit into a basket.
const basketMax = 20

// Config is what a shop needs to know.
type Config struct {
	Now         func() time.Time // [time.Now]
	VisitorsMax int              // people counted at once; more come in uncounted [100000]
}

// Shop is a website. It is safe for concurrent use.
type Shop struct {
	mux      *http.ServeMux
	template *template.Template
	teas     []tea
	visitors *visitors
	now      func() time.Time
}

// tea is something to buy. Hue colours its picture.
type tea struct {
	ID, Name, From, Taste string
	Cents                 int
	Hue                   int // degrees
}

// New returns a shop with nobody in it.
func New(c Config) *Shop {
	s := &Shop{
		mux:      http.NewServeMux(),
		template: template.Must(template.New("shop").Funcs(template.FuncMap{"euros": euros}).Parse(pages)),
		teas:     assortment(),
		visitors: newVisitors(cmp.Or(c.VisitorsMax, 100_000)),
		now:      c.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.mux.HandleFunc("GET /{$}", s.list)
	s.mux.HandleFunc("GET /tea/{id}", s.tea)
	s.mux.HandleFunc("GET /basket", s.basket)
	s.mux.HandleFunc("POST /basket", s.add)
	s.mux.HandleFunc("POST /checkout", s.checkout)
	s.mux.HandleFunc("GET /_shop/stats", s.stats)
	return s
}

// ServeHTTP counts the visitor and answers.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if sub, exp, ok := bearer(r.Header.Get(passHeader)); ok {
		s.visitors.see(sub, exp, s.now())
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'")
	s.mux.ServeHTTP(w, r)
}

// Stats returns who is in the shop.
func (s *Shop) Stats() Stats { return s.visitors.stats(s.now()) }

// view is what the pages show.
type view struct {
	Page   string
	Teas   []tea // the assortment, or the basket
	Tea    tea
	Sum    int // cents
	Basket int // things in it
	Stats  Stats
}

func (s *Shop) list(w http.ResponseWriter, r *http.Request) {
	s.write(w, http.StatusOK, view{Page: "list", Teas: s.teas, Basket: len(s.inBasket(r))})
}

func (s *Shop) tea(w http.ResponseWriter, r *http.Request) {
	t, ok := s.find(r.PathValue("id"))
	if !ok {
		s.write(w, http.StatusNotFound, view{Page: "missing", Basket: len(s.inBasket(r))})
		return
	}
	s.write(w, http.StatusOK, view{Page: "tea", Tea: t, Basket: len(s.inBasket(r))})
}

func (s *Shop) basket(w http.ResponseWriter, r *http.Request) {
	s.write(w, http.StatusOK, s.basketOf(r, "basket"))
}

func (s *Shop) basketOf(r *http.Request, page string) view {
	v := view{Page: page, Teas: s.inBasket(r)}
	for _, t := range v.Teas {
		v.Sum += t.Cents
	}
	v.Basket = len(v.Teas)
	return v
}

func (s *Shop) add(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	t, ok := s.find(r.FormValue("tea"))
	if !ok {
		s.write(w, http.StatusBadRequest, view{Page: "missing"})
		return
	}
	var ids []string
	for _, had := range s.inBasket(r) {
		ids = append(ids, had.ID)
	}
	ids = append(ids, t.ID)
	ids = ids[max(0, len(ids)-basketMax):]
	http.SetCookie(w, &http.Cookie{Name: basketCookie, Value: strings.Join(ids, "."), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/basket", http.StatusSeeOther)
}

// checkout ends the visit. It does not redirect to a page of thanks: the pass
// is gone by then, and the visitor would read the thanks after queueing again.
func (s *Shop) checkout(w http.ResponseWriter, r *http.Request) {
	if sub, _, ok := bearer(r.Header.Get(passHeader)); ok {
		s.visitors.end(sub)
	}
	w.Header().Set(commandHeader, revoke)
	http.SetCookie(w, &http.Cookie{Name: basketCookie, Path: "/", MaxAge: -1})
	v := s.basketOf(r, "thanks")
	v.Basket = 0
	s.write(w, http.StatusOK, v)
}

func (s *Shop) stats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(s.Stats()) // the client is gone, if anything
}

func (s *Shop) write(w http.ResponseWriter, status int, v view) {
	v.Stats = s.Stats()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "private, no-cache")
	w.WriteHeader(status)
	_ = s.template.Execute(w, v) // as above
}

func (s *Shop) find(id string) (tea, bool) {
	i := slices.IndexFunc(s.teas, func(t tea) bool { return t.ID == id })
	if i < 0 {
		return tea{}, false
	}
	return s.teas[i], true
}

// inBasket reads the cookie; what it does not know it leaves out.
func (s *Shop) inBasket(r *http.Request) []tea {
	c, err := r.Cookie(basketCookie)
	if err != nil {
		return nil
	}
	var in []tea
	for id := range strings.SplitSeq(c.Value, ".") {
		if t, ok := s.find(id); ok && len(in) < basketMax {
			in = append(in, t)
		}
	}
	return in
}

func euros(cents int) string { return fmt.Sprintf("€ %d.%02d", cents/100, cents%100) }

func assortment() []tea {
	return []tea{
		{"first-flush", "First Flush", "Darjeeling, March", "muscat grape, hay, a cool finish", 1850, 45},
		{"gyokuro", "Gyokuro", "Uji, shaded for three weeks", "sea air, sweet pea, umami", 2400, 140},
		{"white-peony", "White Peony", "Fuding, April", "melon, cucumber, honey", 1600, 75},
		{"tieguanyin", "Tieguanyin", "Anxi, autumn", "orchid, cream, chestnut", 1950, 165},
		{"lapsang", "Lapsang Souchong", "Wuyi, over pine", "campfire, plum, cocoa", 1250, 18},
		{"rooibos", "Rooibos", "Cederberg", "vanilla, apricot, no caffeine", 700, 8},
	}
}
