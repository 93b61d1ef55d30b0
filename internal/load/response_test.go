package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersAreReadInAllTheirForms(t *testing.T) {
	for text, want := range map[string]response{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc":                                                                               {status: 200, body: []byte("abc")},
		"HTTP/1.1 200 OK\ncontent-length: 3\nCONTENT-LENGTH: 3\n\nabc":                                                                  {status: 200, body: []byte("abc")},
		"HTTP/1.1 204 No Content\r\n\r\n":                                                                                               {status: 204},
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: x\r\n\r\n":                                  {status: 200, body: []byte("abc")},
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n":           {status: 201},
		"HTTP/1.1 503 No\r\nRetry-After: 7\r\nConnection: keep-alive, Close\r\nContent-Length: 1\r\n\r\nx":                              {status: 503, body: []byte("x"), retryAfter: 7 * time.Second, closes: true},
		"HTTP/1.1 429 No\r\nRetry-After: 99999\r\nContent-Length: 0\r\n\r\n":                                                            {status: 429, retryAfter: retryMax},
		"HTTP/1.0 200 OK\r\n\r\nall the rest":                                                                                           {status: 200, body: []byte("all the rest"), closes: true},
		"HTTP/1.1 200 OK\r\nSet-Cookie: other=1; Path=/\r\nSet-Cookie: anteroom_shop=Ic; Path=/; HttpOnly\r\nContent-Length: 0\r\n\r\n": {status: 200, cookie: []byte("Ic")},
	} {
		var got response
		if err := got.read(bufio.NewReader(strings.NewReader(text)), nil, false, "anteroom_shop"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got.body = got.body[:len(got.body):len(got.body)]; len(got.body) == 0 {
			got.body = nil
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(response{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestAnswersThatBreakOffOrNeverEndAreRefused(t *testing.T) {
	for text, want := range map[string]error{
		"":                            io.EOF,
		"HTTP/1.1 200 OK":             io.ErrUnexpectedEOF,
		"HTTP/1.1 200 OK\r\nA: b\r\n": io.ErrUnexpectedEOF,
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc":                       io.ErrUnexpectedEOF,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabc":         io.ErrUnexpectedEOF,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n":  io.ErrUnexpectedEOF,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n":      errHTTP,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n":      errHTTP,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n":                    errHTTP,
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":                         errHTTP,
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab":   errHTTP,
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n":                   errHTTP,
		"HTTP/1.1 101 Switching\r\n\r\n":                                        errHTTP,
		"HTTP/1.1 20x OK\r\n\r\n":                                               errHTTP,
		"HTTP/1.1 2000 OK\r\n\r\n":                                              errHTTP,
		"HTTP/2.0 200 OK\r\n\r\n":                                               errHTTP,
		"SSH-2.0-OpenSSH_9.2\r\n":                                               errHTTP,
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n":                                   errHTTP,
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", lineMax) + "\r\n\r\n":    errHTTP,
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", linesMax+1) + "\r\n": errHTTP,
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", interimMax+1):           errHTTP,
		"HTTP/1.0 200 OK\r\n\r\n" + strings.Repeat("a", bodyMax+1):              errHTTP,
	} {
		var p response
		if err := p.read(bufio.NewReaderSize(strings.NewReader(text), lineMax), nil, false, ""); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", text, err, want)
		}
	}
}

func TestAPageMayBeOfAnyLength(t *testing.T) {
	for _, head := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"} {
		in := bufio.NewReader(strings.NewReader(head + strings.Repeat("a", 1_000_000)))
		var p response
		if err := p.read(in, nil, true, ""); err != nil || len(p.body) != 0 || in.Buffered() != 0 {
			t.Errorf("%q: %v, %d bytes kept, %d left", head, err, len(p.body), in.Buffered())
		}
	}
}

// What both we and net/http take for an answer says the same to both.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n0\r\nT: x\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 404 No\r\nRetry-After: 3\r\n\r\nabc"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(text), lineMax)
		var got response
		if got.read(in, nil, false, "c") != nil || len(got.body) > bodyMax {
			return
		}
		want, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		if err != nil || want.StatusCode < 200 {
			return // net/http is stricter, and hands interim answers on
		}
		body, err := io.ReadAll(want.Body)
		if err != nil {
			return
		}
		if got.status != want.StatusCode || !bytes.Equal(got.body, body) {
			t.Errorf("read %d and %q, net/http %d and %q", got.status, got.body, want.StatusCode, body)
		}
	})
}
