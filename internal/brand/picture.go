package brand

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// PictureMax bounds a picture, in bytes: people wait for it on slow networks.
const PictureMax = 64 << 10

// InlineMax is how large a picture may be to come with the page itself, in bytes.
// A request of its own would cost more; the page with two of them still fits in the
// first round trip of a connection (ten packets).
const InlineMax = 2 << 10

// Picture is a logo or an icon.
type Picture struct {
	Type  string // its media type
	Sum   string // names it
	Bytes []byte
}

// NewPicture sees what kind of picture it is. The name of its file does not count.
func NewPicture(b []byte) (Picture, error) {
	kind := http.DetectContentType(b)
	switch {
	case len(b) > PictureMax:
		return Picture{}, fmt.Errorf("over %d bytes; give a smaller picture, such as an SVG", PictureMax)
	case isSVG(b):
		kind = "image/svg+xml"
	case kind != "image/png" && kind != "image/jpeg" && kind != "image/gif" && kind != "image/webp" && kind != "image/x-icon":
		return Picture{}, errors.New("no picture that browsers show; give SVG, PNG, JPEG, WebP, GIF or ICO")
	}
	sum := sha256.Sum256(b)
	return Picture{kind, hex.EncodeToString(sum[:16]), b}, nil
}

// isSVG reports whether the first element is an svg. A script in it runs nowhere:
// the page shows it as a picture, and the gateway serves it in a sandbox.
func isSVG(b []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		t, err := d.RawToken()
		if err != nil {
			return false
		}
		if e, ok := t.(xml.StartElement); ok {
			return e.Name.Local == "svg"
		}
	}
}

// IsDataURL reports whether text is one, and not the name of a file.
func IsDataURL(text string) bool { return strings.HasPrefix(text, "data:") }

// ParsePicture reads a data URL.
func ParsePicture(text string) (Picture, error) {
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "data:"), ",")
	if !IsDataURL(text) || !ok || !strings.HasSuffix(head, ";base64") {
		return Picture{}, errors.New("no picture; give the name of a file, or data:image/png;base64,…")
	}
	if len(body) > base64.StdEncoding.EncodedLen(PictureMax) {
		return NewPicture(make([]byte, PictureMax+1))
	}
	b, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return Picture{}, errors.New("what follows base64, is not that; give the name of a file, or data:image/png;base64,…")
	}
	return NewPicture(b)
}

// Small reports whether the picture comes with the page.
func (p Picture) Small() bool { return len(p.Bytes) <= InlineMax }

// URL is the picture as a data URL.
func (p Picture) URL() string {
	return "data:" + p.Type + ";base64," + base64.StdEncoding.EncodeToString(p.Bytes)
}
