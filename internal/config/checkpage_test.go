package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

func TestCookieAttributesAreCloudflares(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{samesite: none, secure: always}", ""},
		{"{samesite: none}", ""},
		{"{samesite: None}", `cookie_attributes.samesite: "None"; give auto, lax, none or strict`},
		{"{secure: 'yes'}", `cookie_attributes.secure: "yes"; give auto, always or never`},
		{"{samesite: none, secure: never}", "cookie_attributes.secure: never: browsers drop a cookie with samesite none that is not secure; give auto or always"},
	} {
		f := parse("rooms:\n  - {name: shop, total_active_users: 1, cookie_attributes: "+c.text+"}\n", config.Options{})
		if got := strings.TrimPrefix(errorText(f), "a.yaml:2: rooms[0]."); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

func errorText(f *config.File) string {
	if err := f.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// A page can stand in a file of its own, beside the configuration.
func TestCustomPageComesFromAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("wait.html", "\ufeff<p>{{position}}")
	write("large.html", strings.Repeat("x", 1<<20+1))
	const room = "node: {data: ''}\nrooms:\n  - name: shop\n    total_active_users: 1\n"
	for _, c := range []struct{ keys, html, want string }{
		{"    custom_page_html: <p>\n", "<p>", ""},
		{"    custom_page_file: wait.html\n", "<p>{{position}}", ""},
		{"    custom_page_file: nope.html\n", "", "5: rooms[0].custom_page_file: " + dir + "/nope.html is not there; give an HTML file with Mustache tags"},
		{"    custom_page_file: .\n", "", "5: rooms[0].custom_page_file: " + dir + " cannot be read: is a directory; give a file that this user may read"},
		{"    custom_page_file: large.html\n", "", "5: rooms[0].custom_page_file: " + dir + "/large.html has over 1048576 bytes; give a page of at most that, which links to its pictures"},
		{"    custom_page_file: wait.html\n    custom_page_html: x\n", "x", "5: rooms[0].custom_page_file: custom_page_html is given too; give one of them"},
	} {
		f := config.Load(write("a.yaml", room+c.keys), config.Options{Host: "host-1"})
		if got := strings.TrimPrefix(errorText(f), f.Name+":"); got != c.want {
			t.Errorf("%s: %q, want %q", c.keys, got, c.want)
		}
		if r := f.Config.Rooms[0]; r.CustomPageHTML != c.html || c.want == "" && r.CustomPageFile != "" {
			t.Errorf("%s: html %.20q, file %q; want %q", c.keys, r.CustomPageHTML, r.CustomPageFile, c.html)
		}
	}
}

func TestCheckPagesTellsWhereAPageIsWrong(t *testing.T) {
	f := parse("rooms:\n  - {name: a, total_active_users: 1, custom_page_html: bad}\n  - {name: b, total_active_users: 1, custom_page_html: odd}\n"+
		"  - {name: c, total_active_users: 1}\n", config.Options{})
	f.CheckPages(func(html string) ([]string, error) {
		if html == "bad" {
			return nil, errors.New("line 1: bad")
		}
		return []string{"is " + html}, nil
	})
	got := append(problems(f.Errors), problems(f.Warnings, "security.signing_keys")...)
	want := []string{"a.yaml:2: rooms[0].custom_page_html: line 1: bad", "a.yaml:3: rooms[1].custom_page_html: is odd"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A picture can stand in a file, or in the configuration itself.
func TestPicturesComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("logo.svg", "<svg/>")
	write("page.html", "<p>")
	write("large.png", strings.Repeat("x", 1<<16+1))
	write("long.svg", "<svg>"+strings.Repeat(" ", 2<<10)+"</svg>")
	const room = "node: {data: ''}\nrooms:\n  - name: shop\n    total_active_users: 1\n"
	for _, c := range []struct{ keys, logo, want string }{
		{"    logo: logo.svg\n", "data:image/svg+xml;base64,PHN2Zy8+", ""},
		{"    logo: data:image/gif;base64,R0lGODlh\n", "data:image/gif;base64,R0lGODlh", ""},
		{"    logo: data:image/gif;base64,\n", "", "5: rooms[0].logo: it is no picture that browsers show; give SVG, PNG, JPEG, WebP, GIF or ICO"},
		{"    logo: nope.png\n", "", "5: rooms[0].logo: " + dir + "/nope.png is not there; give a file with a picture, or data:image/png;base64,…"},
		{"    logo: page.html\n", "", "5: rooms[0].logo: " + dir + "/page.html is no picture that browsers show; give SVG, PNG, JPEG, WebP, GIF or ICO"},
		{"    favicon: large.png\n", "", "5: rooms[0].favicon: " + dir + "/large.png is over 65536 bytes; give a smaller picture, such as an SVG"},
	} {
		f := config.Load(write("a.yaml", room+c.keys), config.Options{Host: "host-1"})
		if got := strings.TrimPrefix(errorText(f), f.Name+":"); got != c.want {
			t.Errorf("%s: %q, want %q", c.keys, got, c.want)
		}
		if w := problems(f.Warnings, "security.signing_keys"); len(w) > 0 {
			t.Errorf("%s: %q", c.keys, w)
		}
		if got := string(f.Config.Rooms[0].Logo); c.want == "" && got != c.logo {
			t.Errorf("%s: %q, want %q", c.keys, got, c.logo)
		}
	}
	f := config.Load(write("a.yaml", room+"    logo: long.svg\n    favicon: long.svg\n"), config.Options{Host: "host-1"})
	const want = "a.yaml:6: rooms[0].favicon: over 2048 bytes, as the logo is: every browser makes a request for each; a smaller one comes with the page"
	if w := problems(f.Warnings, "security.signing_keys"); f.Err() != nil || len(w) != 1 || !strings.HasSuffix(w[0], want) {
		t.Errorf("two large pictures: %v, %q, want %q", f.Err(), w, want)
	}
}
