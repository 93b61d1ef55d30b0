package brand_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/brand"
)

func TestPicturesGoByWhatIsInThem(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, kind, refused string }{
		{b.String(), "image/png", ""},
		{"<?xml version='1.0'?><!-- a leaf -->\n<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", ""},
		{"GIF89a", "image/gif", ""},
		{"<html><svg/></html>", "", "no picture that browsers show; give SVG, PNG"},
		{"<!-- svg -->", "", "no picture"},
		{"", "", "no picture"},
		{strings.Repeat("x", brand.PictureMax+1), "", "over 65536 bytes; give a smaller picture"},
	} {
		p, err := brand.NewPicture([]byte(c.text))
		if err == nil && c.refused != "" || err != nil && (c.refused == "" || !strings.Contains(err.Error(), c.refused)) || p.Type != c.kind {
			t.Errorf("%.30q: %q, %v", c.text, p.Type, err)
		}
		if err != nil {
			continue
		}
		if again, err := brand.ParsePicture(p.URL()); err != nil || again.Sum != p.Sum || again.Type != p.Type {
			t.Errorf("%.30q as a data URL: %q, %v", c.text, again.Type, err)
		}
	}
}

func TestDataURLsThatAreNoPictures(t *testing.T) {
	for text, want := range map[string]string{
		"data:image/png,x":             "give the name of a file, or data:image/png;base64,",
		"data:":                        "give the name of a file",
		"data:image/png;base64,!":      "what follows base64, is not that",
		"data:text/html;base64,PGI+":   "no picture that browsers show",
		"https://example.com/logo.png": "give the name of a file",
		"data:image/png;base64," + strings.Repeat("A", base64.StdEncoding.EncodedLen(brand.PictureMax)+4): "over 65536 bytes",
	} {
		if p, err := brand.ParsePicture(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %q, %v; want %q", text, p.Type, err, want)
		}
	}
}
