package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// What one answer may bring, so that no server fills our memory.
const (
	lineMax    = 8 << 10 // bytes of a line of a header; the size of a reader
	linesMax   = 128     // of a header
	bodyMax    = 64 << 10
	interimMax = 8                // answers 1xx before the real one
	retryMax   = 30 * time.Second // longest Retry-After that is believed
)

// response is an answer as it came. The slices are good until the next one.
type response struct {
	status     int
	body       []byte
	retryAfter time.Duration
	cookie     []byte // value that Set-Cookie gives to the room's cookie; nil: none
	closes     bool   // the connection cannot be used again
}

var errHTTP = errors.New("the answer is not HTTP/1.1 as we know it")

func malformed(what string) error { return fmt.Errorf("%w: %s", errHTTP, what) }

// header is what a head says about the body behind it.
type header struct {
	length  int64 // -1: not said
	chunked bool
	old     bool // HTTP/1.0, which has no chunks
}

// read reads one answer to a request that was no HEAD. body is where to put its
// body; with discard that is only counted, of any length. cookie is the name of
// the cookie to look for.
func (p *response) read(r *bufio.Reader, body []byte, discard bool, cookie string) error {
	for range interimMax {
		*p = response{body: body[:0]}
		h, err := p.head(r, cookie)
		if err != nil {
			return err
		}
		switch {
		case p.status == 101:
			return malformed("it changes the protocol")
		case p.status < 200:
			continue
		case p.status == 204 || p.status == 304:
			return nil
		case h.chunked:
			return p.chunks(r, discard)
		case h.length < 0:
			p.closes = true
			return p.rest(r, discard)
		}
		return p.part(r, h.length, discard)
	}
	return malformed("only interim answers")
}

// head reads the status line and the header.
func (p *response) head(r *bufio.Reader, cookie string) (h header, err error) {
	h.length = -1
	line, err := readLine(r)
	if err != nil {
		return h, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return h, malformed("status line")
	}
	if p.status, err = strconv.Atoi(string(line[9:12])); err != nil || p.status < 100 {
		return h, malformed("status")
	}
	h.old = line[7] == '0'
	p.closes = h.old
	for range linesMax {
		if line, err = readLine(r); err != nil {
			return h, noEnd(err)
		}
		if len(line) == 0 {
			return h, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return h, malformed("header line")
		}
		if err := p.field(&h, name, bytes.TrimSpace(value), cookie); err != nil {
			return h, err
		}
	}
	return h, malformed("too many header lines")
}

// field reads one line of a header. Of most, the length of the name tells that
// it is not of interest.
func (p *response) field(h *header, name, value []byte, cookie string) error {
	is := func(want string) bool { return len(name) == len(want) && bytes.EqualFold(name, []byte(want)) }
	switch {
	case is("Content-Length"):
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || h.length >= 0 && h.length != int64(n) {
			return malformed("Content-Length")
		}
		h.length = int64(n)
	case is("Transfer-Encoding"):
		if h.chunked || h.old || !bytes.EqualFold(value, []byte("chunked")) {
			return malformed("Transfer-Encoding")
		}
		h.chunked = true
	case is("Connection"):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			p.closes = p.closes || bytes.EqualFold(bytes.TrimSpace(option), []byte("close"))
		}
	case is("Retry-After"):
		if n, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			p.retryAfter = min(time.Duration(n)*time.Second, retryMax)
		}
	case is("Set-Cookie") && cookie != "":
		pair, _, _ := bytes.Cut(value, []byte(";"))
		if k, v, ok := bytes.Cut(pair, []byte("=")); ok && string(k) == cookie {
			p.cookie = bytes.Clone(v) // the line is gone with the next one
		}
	}
	return nil
}

// chunks reads a body in chunks, and what trails it.
func (p *response) chunks(r *bufio.Reader, discard bool) error {
	for {
		line, err := readLine(r)
		if err != nil {
			return noEnd(err)
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 62)
		if err != nil {
			return malformed("chunk")
		}
		if n == 0 {
			break
		}
		if err := p.part(r, int64(n), discard); err != nil {
			return err
		}
		if line, err = readLine(r); err != nil || len(line) > 0 {
			return malformed("end of a chunk")
		}
	}
	for range linesMax {
		if line, err := readLine(r); err != nil || len(line) == 0 {
			return noEnd(err)
		}
	}
	return malformed("too many trailers")
}

// part reads the next n bytes of the body.
func (p *response) part(r *bufio.Reader, n int64, discard bool) error {
	if discard {
		_, err := io.CopyN(io.Discard, r, n)
		return noEnd(err)
	}
	if n > bodyMax-int64(len(p.body)) {
		return malformed("body too long")
	}
	had := len(p.body)
	if need := had + int(n); need <= cap(p.body) {
		p.body = p.body[:need]
	} else {
		p.body = append(p.body, make([]byte, n)...)
	}
	_, err := io.ReadFull(r, p.body[had:])
	return noEnd(err)
}

// rest reads a body that ends with the connection.
func (p *response) rest(r *bufio.Reader, discard bool) error {
	if discard {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	b, err := io.ReadAll(io.LimitReader(r, bodyMax+1))
	if p.body = append(p.body, b...); len(p.body) > bodyMax {
		return malformed("body too long")
	}
	return err
}

// readLine returns a line without its end. It is good until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, malformed("line too long")
	case err != nil && len(line) > 0:
		return nil, noEnd(err)
	case err != nil:
		return nil, err
	}
	line = line[:len(line)-1]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, nil
}

// noEnd makes an end of the connection an unexpected one.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
