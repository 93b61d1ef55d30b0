package gateway

import (
	"net/http"
	"strconv"

	"github.com/anteroom/anteroom/internal/brand"
)

// picture is where a page has a room's picture from: a small one is in the page, any
// other has an address, which changes when the picture does. Empty for none.
func (c *call) picture(name string, p *brand.Picture) string {
	if p == nil {
		return ""
	}
	if p.Small() {
		return p.URL()
	}
	return c.own(name) + "?v=" + p.Sum
}

func (c *call) ownLogo() error { return c.writePicture(c.room.Logo) }

func (c *call) ownIcon() error { return c.writePicture(c.room.Icon) }

// writePicture answers with a picture that browsers may keep, since another one
// has another address. An SVG that is opened by itself, and not as a picture, is a
// page: it gets a sandbox in which nothing runs or loads.
func (c *call) writePicture(p *brand.Picture) error {
	if p == nil {
		return &HTTPError{Status: 404, Code: "not_found", Title: "Nothing here", Detail: "This node has no such picture for the room."}
	}
	h := c.w.Header()
	h.Set("Content-Type", p.Type)
	h.Set("Content-Length", strconv.Itoa(len(p.Bytes)))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	if c.r.URL.Query().Get("v") == p.Sum {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(p.Bytes)
	}
	return nil
}
