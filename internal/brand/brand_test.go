package brand_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/internal/brand"
)

func TestContrastIsThatOfWCAG(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"#000", "#fff", 21}, {"#fff", "#fff", 1}, {"#777777", "#ffffff", 4.48}, {"#767676", "#fff", 4.54},
	} {
		if got := brand.Contrast(color(t, c.a), color(t, c.b)); got < c.want-0.005 || got > c.want+0.005 {
			t.Errorf("Contrast(%s, %s) = %.3f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}

func color(t *testing.T, text string) brand.Color {
	t.Helper()
	c, err := brand.ParseColor(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestColorsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "red", "#12", "#12345", "#1234567", "0b6b66", "#0b6b6g", "#fff;}", "#fff "} {
		if c, err := brand.ParseColor(text); err == nil || !strings.Contains(err.Error(), "give one such as #0b6b66") {
			t.Errorf("ParseColor(%q) = %v, %v", text, c, err)
		}
	}
}

// Whatever an operator likes, it can be read; and what can be read stays as it is.
func TestEveryColorBecomesReadable(t *testing.T) {
	black, white := brand.Color{}, brand.Color{R: 255, G: 255, B: 255}
	light := []brand.Color{white, {R: 0xf3, G: 0xf1, B: 0xec}}
	dark := []brand.Color{{R: 0x19, G: 0x21, B: 0x2a}, {R: 0x10, G: 0x15, B: 0x1b}}
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Uint8()
		c := brand.Color{R: part.Draw(t, "r"), G: part.Draw(t, "g"), B: part.Draw(t, "b")}
		for _, on := range []struct {
			far     brand.Color
			grounds []brand.Color
		}{{black, light}, {white, dark}} {
			got, was := c.Readable(on.far, on.grounds...), true
			for _, g := range on.grounds {
				if brand.Contrast(got, g) < 4.5 {
					t.Fatalf("%v became %v, whose contrast with %v is %.2f", c, got, g, brand.Contrast(got, g))
				}
				was = was && brand.Contrast(c, g) >= 4.5
			}
			if was != (got == c) && c != on.far {
				t.Fatalf("%v became %v; readable before: %v", c, got, was)
			}
		}
	})
}

func TestTextWithLinks(t *testing.T) {
	got, err := brand.ParseText("Tea from 9 to 5.\nSee [our prices](https://example.com/p?a=1&b=2) or [write](mailto:tea@example.com) [sic] (now).")
	want := []brand.Part{
		{Text: "Tea from 9 to 5.\nSee "},
		{Text: "our prices", URL: "https://example.com/p?a=1&b=2"},
		{Text: " or "},
		{Text: "write", URL: "mailto:tea@example.com"},
		{Text: " [sic] (now)."},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("(-want +got, %v):\n%s", err, d)
	}
	for _, to := range []string{"javascript:alert", "data:text/html,x", "/prices", "//example.com", "https:", "mailto:", "ftp://example.com", "%zz"} {
		if parts, err := brand.ParseText("see [this](" + to + ")"); err == nil || !strings.Contains(err.Error(), "give a whole address") {
			t.Errorf("%s: %v, %v", to, parts, err)
		}
	}
}

// No text becomes a link that leads elsewhere than the web and mail, and none is lost.
func FuzzParseText(f *testing.F) {
	f.Add("a [b](https://c.example) d")
	f.Add("[a](javascript:b)[c](mailto:d)")
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := brand.ParseText(text)
		if err != nil {
			return
		}
		var all strings.Builder
		for _, p := range parts {
			if p.URL == "" {
				all.WriteString(p.Text)
				continue
			}
			if !strings.HasPrefix(strings.ToLower(p.URL), "http") && !strings.HasPrefix(strings.ToLower(p.URL), "mailto:") {
				t.Fatalf("%q leads to %q", text, p.URL)
			}
			all.WriteString("[" + p.Text + "](" + p.URL + ")")
		}
		if all.String() != text {
			t.Fatalf("%q became %q", text, all.String())
		}
	})
}
