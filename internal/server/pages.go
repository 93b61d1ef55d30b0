package server

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/gateway/page"
	"github.com/anteroom/anteroom/internal/brand"
	"github.com/anteroom/anteroom/internal/config"
)

// customPages are the rooms' own waiting pages. A page can be a thousand times
// as large as all else that a wave says of its room, several times a second. So
// the cluster carries its sum, and each node reads the page from its own file;
// one that has not got it shows the built-in page.
type customPages struct {
	base *page.Pages
	log  *slog.Logger

	mu    sync.Mutex
	bySum map[string]gateway.Pager
	drawn map[string]brand.Picture // logos and icons, by their sums; a node has those of its last file
	file  map[string]bool          // sums of the pages of the last file
	told  map[string]bool          // rooms of which the log knows that their page is missing
	news  bool                     // there are pages that the gateway has not seen
}

func newCustomPages(base *page.Pages, log *slog.Logger) *customPages {
	return &customPages{base: base, log: log, bySum: make(map[string]gateway.Pager), told: make(map[string]bool)}
}

// sumOfPage names a page; empty for none.
func sumOfPage(html string) string {
	if html == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(html))
	return hex.EncodeToString(sum[:16])
}

// learn takes up the pages of a file.
func (p *customPages) learn(rooms []config.Room) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file, p.drawn = make(map[string]bool), make(map[string]brand.Picture)
	for _, r := range rooms {
		p.learnPicture(r.Logo)
		p.learnPicture(r.Favicon)
		p.learnPage(r.Name, r.CustomPageHTML)
		for _, e := range r.Events {
			p.learnPage(r.Name, e.CustomPageHTML)
		}
	}
}

func (p *customPages) learnPage(room, html string) {
	sum := sumOfPage(html)
	if sum == "" {
		return
	}
	p.file[sum] = true
	if p.bySum[sum] != nil {
		return
	}
	c, err := p.base.Custom(html)
	if err != nil {
		p.log.Warn("a room's own page cannot be shown, visitors see the built-in one", "room", room, "err", err)
		return
	}
	p.bySum[sum], p.news = c, true
}

// sumOfPicture names a picture of a file; empty for none.
func sumOfPicture(of config.Path) string {
	if p, err := brand.ParsePicture(string(of)); err == nil {
		return p.Sum
	}
	return ""
}

func (p *customPages) learnPicture(of config.Path) {
	if picture, err := brand.ParsePicture(string(of)); err == nil { // what is none was refused with the file
		p.drawn[picture.Sum], p.news = picture, true
	}
}

// pictures returns the logo and the icon of a room; nil for one that it has not,
// or that this node's file has not.
func (p *customPages) pictures(r eviction.Room) (logo, icon *brand.Picture) {
	s, err := settingsOf(r)
	if err != nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	find := func(sum string) *brand.Picture {
		picture, ok := p.drawn[sum]
		if !ok {
			return nil
		}
		return &picture
	}
	return find(s.Logo), find(s.Icon)
}

// eventPages are the sums of the pages that events of the room have, by event.
func eventPages(r config.Room) map[string]string {
	var sums map[string]string
	for _, e := range r.Events {
		if sum := sumOfPage(e.CustomPageHTML); sum != "" {
			if sums == nil {
				sums = make(map[string]string)
			}
			sums[e.Name] = sum
		}
	}
	return sums
}

// page is the sum of the page to show while the event of that name holds.
func (s *settings) page(event string) string {
	if sum := s.EventPages[event]; sum != "" {
		return sum
	}
	return s.CustomPage
}

// fresh reports whether there are new pages since it was asked last.
func (p *customPages) fresh() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := p.news
	p.news = false
	return news
}

// of returns the room's own page; nil if it has none, or none here.
func (p *customPages) of(r eviction.Room) gateway.Pager {
	s, err := settingsOf(r)
	sum := s.page(r.Event.Name)
	if err != nil || sum == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.bySum[sum]
	switch {
	case c != nil:
		delete(p.told, r.Name)
	case !p.told[r.Name] && !p.file[sum]:
		p.told[r.Name] = true
		p.log.Warn("the cluster has another page for this room than this node's file, so visitors here see the built-in one; "+
			"give this node the same custom_page_html or custom_page_file, and SIGHUP", "room", r.Name)
	}
	return c
}

// keep forgets the pages that neither a room of the cluster nor the file has.
func (p *customPages) keep(rooms []eviction.Room) {
	used := make(map[string]bool)
	for _, r := range rooms {
		if s, err := settingsOf(r); err == nil {
			used[s.CustomPage] = true
			for _, sum := range s.EventPages {
				used[sum] = true
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for sum := range p.bySum {
		if !used[sum] && !p.file[sum] {
			delete(p.bySum, sum)
		}
	}
}

// cookieOf is what a room's cookie is like; auto goes without saying.
func cookieOf(r config.Room) gateway.Cookie {
	c := gateway.Cookie{SameSite: r.CookieAttributes.SameSite, Secure: r.CookieAttributes.Secure}
	if c.SameSite == "auto" {
		c.SameSite = ""
	}
	if c.Secure == "auto" {
		c.Secure = ""
	}
	return c
}

// CheckPages sees that the custom pages of a file can be shown.
func CheckPages(f *config.File) *config.File {
	f.CheckPages(func(html string) ([]string, error) {
		pages, err := page.New()
		if err != nil {
			return nil, err
		}
		c, err := pages.Custom(html)
		if err != nil {
			return nil, err
		}
		return c.Warnings(), nil
	})
	return f
}
