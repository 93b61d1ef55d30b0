package gateway

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// compressMin is the shortest page that is worth compressing, in bytes: it fits in
// one packet.
const compressMin = 1400

// compressed returns b as gzip, or b itself where that must not be.
//
// A page that has a ticket in it stays as it is: its length would tell whoever
// watches the wire how much of the ticket is also in the address, which another
// site may choose (BREACH). So does the answer to a proxy that only asks for leave:
// not all of them pass on what the answer is encoded in.
func (c *call) compressed(v *View, b *bytes.Buffer) *bytes.Buffer {
	if c.byProxy || v.InAddress || v.TakeURL != "" || v.LinkURL != "" || b.Len() < compressMin || !acceptsGzip(c.r.Header) {
		return b
	}
	out := new(bytes.Buffer)
	z := c.g.zippers.Get().(*gzip.Writer)
	defer c.g.zippers.Put(z)
	z.Reset(out)
	_, _ = z.Write(b.Bytes()) // a buffer takes everything
	_ = z.Close()
	c.w.Header().Set("Content-Encoding", "gzip")
	return out
}

// acceptsGzip reads Accept-Encoding. Who takes anything but does not say gzip gets
// the page as it is, which all take.
func acceptsGzip(h http.Header) bool {
	for _, line := range h["Accept-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(coding, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			q, given := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && weight > 0
		}
	}
	return false
}
