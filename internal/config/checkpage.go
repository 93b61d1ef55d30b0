package config

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/brand"
)

// CookieAttributes are those of a room's cookie. Words and keys are Cloudflare's.
type CookieAttributes struct {
	SameSite string `json:"samesite"`
	Secure   string `json:"secure"`
}

func sameSites() []string { return []string{"auto", "lax", "none", "strict"} }
func secures() []string   { return []string{"auto", "always", "never"} }

// pageMax is how long a custom page may be, in bytes; Cloudflare's bound.
const pageMax = 1 << 20

// checkPage checks what a room's visitors are shown and given to keep. What is
// in a page is for those to check who can read it, see CheckPages.
func (f *File) checkPage(key string, r Room) {
	c := r.CookieAttributes
	if !slices.Contains(sameSites(), c.SameSite) {
		f.fault(key+".cookie_attributes.samesite", "%q; give %s", c.SameSite, either(sameSites()))
	}
	if !slices.Contains(secures(), c.Secure) {
		f.fault(key+".cookie_attributes.secure", "%q; give %s", c.Secure, either(secures()))
	}
	if c.SameSite == "none" && c.Secure == "never" {
		f.fault(key+".cookie_attributes.secure", "never: browsers drop a cookie with samesite none that is not secure; give auto or always")
	}
	if r.CustomPageHTML != "" && r.CustomPageFile != "" {
		f.fault(key+".custom_page_file", "custom_page_html is given too; give one of them")
	}
	if n := len(r.CustomPageHTML); n > pageMax {
		f.fault(key+".custom_page_html", "%d bytes; give at most %d", n, pageMax)
	}
}

// readPages puts the text of files in the place of their names.
func (f *File) readPages() {
	for i := range f.Config.Rooms {
		r, key := &f.Config.Rooms[i], "rooms"+index(i)
		f.readPage(key+".custom_page_file", &r.CustomPageHTML, &r.CustomPageFile)
		f.readPicture(key+".logo", &r.Logo)
		f.readPicture(key+".favicon", &r.Favicon)
		if large(r.Logo) && large(r.Favicon) {
			f.warn(key+".favicon", "over %d bytes, as the logo is: every browser makes a request for each; a smaller one comes with the page", brand.InlineMax)
		}
		for j := range r.Events {
			e := &r.Events[j]
			f.readPage(key+".events"+index(j)+".custom_page_file", &e.CustomPageHTML, &e.CustomPageFile)
		}
	}
}

func (f *File) readPage(key string, html *string, file *Path) {
	if *file == "" || f.blamed(key) || !f.readable(key, *file, "give an HTML file with Mustache tags") {
		return
	}
	text, err := readPage(*file)
	switch {
	case err != nil:
		f.fault(key, "%s cannot be read: %v; give a file that this user may read", *file, cause(err))
	case len(text) > pageMax:
		f.fault(key, "%s has over %d bytes; give a page of at most that, which links to its pictures", *file, pageMax)
	default:
		*html, *file = text, ""
	}
}

// readPicture puts a picture in the place of the name of its file.
func (f *File) readPicture(key string, at *Path) {
	if *at == "" || brand.IsDataURL(string(*at)) || f.blamed(key) || !f.readable(key, *at, "give a file with a picture, or data:image/png;base64,…") {
		return
	}
	file, err := os.Open(string(*at))
	if err != nil {
		f.fault(key, "%s cannot be read: %v; give a file that this user may read", *at, cause(err))
		return
	}
	defer file.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(file, brand.PictureMax+1))
	if err != nil {
		f.fault(key, "%s cannot be read: %v; give a file that this user may read", *at, cause(err))
		return
	}
	p, err := brand.NewPicture(b)
	if err != nil {
		f.fault(key, "%s is %v", *at, err)
		return
	}
	*at = Path(p.URL())
}

func large(picture Path) bool {
	p, err := brand.ParsePicture(string(picture))
	return err == nil && !p.Small()
}

func readPage(name Path) (string, error) {
	file, err := os.Open(string(name))
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, pageMax+1))
	return strings.TrimPrefix(string(text), "\ufeff"), err
}

// CheckPages has look read the custom pages of all rooms: it says what of a page
// will not work as its author thinks, and an error if it cannot be shown.
func (f *File) CheckPages(look func(html string) (warnings []string, err error)) {
	for i, r := range f.Config.Rooms {
		f.lookAt("rooms"+index(i), r.CustomPageHTML, look)
		for j, e := range r.Events {
			f.lookAt("rooms"+index(i)+".events"+index(j), e.CustomPageHTML, look)
		}
	}
	f.sort()
}

func (f *File) lookAt(at, html string, look func(html string) (warnings []string, err error)) {
	key := at + ".custom_page_html"
	if f.given(at + ".custom_page_file") {
		key = at + ".custom_page_file"
	}
	if html == "" || f.blamed(key) {
		return
	}
	warnings, err := look(html)
	if err != nil {
		f.fault(key, "%v", err)
	}
	for _, w := range warnings {
		f.warn(key, "%s", w)
	}
}
