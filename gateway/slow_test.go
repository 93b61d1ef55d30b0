package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const closing = time.Second // net/http lets what was written arrive before it closes

func TestABodyThatComesTooSlowlyIsAnsweredInTime(t *testing.T) {
	const room = "/_anteroom/v1/rooms/shop/"
	sized, chunked := "Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n64\r\n"
	for _, c := range []struct {
		what, line, body, host, code string
		status                       int
	}{
		{"a join", "POST " + room + "join", sized, "x", "request_invalid", 400},
		{"a check-in in chunks", "POST " + room + "checkin", chunked, "x", "request_invalid", 400},
		{"an end", "POST " + room + "end", sized, "x", "request_invalid", 400},
		{"an unknown room", "POST /_anteroom/v1/rooms/nope/join", sized, "x", "room_unknown", 404},
		{"an unknown request", "POST " + room + "jion", chunked, "x", "not_found", 404},
		{"the wrong method", "GET " + room + "join", sized, "x", "method_not_allowed", 405},
		{"a stream", "GET " + room + "stream", chunked, "x", "ticket_invalid", 401},
		{"a status", "GET " + room + "status", sized, "x", "", 200},
		{"a proxy that asks", "GET " + room + "auth?proxy=nginx", sized, "x", "", 401},
		{"another site", "POST /", sized, "other.example.com", "not_found", 404},
		{"a mirror", "TRACE /", chunked, "shop.example.com", "method_not_allowed", 405},
		{"no path", "GET *", sized, "shop.example.com", "request_invalid", 400},
		{"a form of somebody who waits", "POST /buy", sized, "shop.example.com", "", 429},
		{"a form of a person who waits", "POST /buy", "Sec-Fetch-Mode: navigate\r\n" + sized, "shop.example.com", "", 303},
	} {
		t.Run(c.what, func(t *testing.T) {
			street(t, nil, func(t *testing.T, _ *Gateway, at pipes, _ full) {
				began := time.Now()
				visitor := at.call(t, c.line+" HTTP/1.1\r\nHost: "+c.host+"\r\n"+c.body+"{")
				var drip sync.WaitGroup
				drip.Go(func() {
					for range 90 {
						time.Sleep(time.Second)
						visitor.say(" ")
					}
				})
				r := visitor.answer()
				took(t, began, "the answer", bodyWithin)
				b, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != c.status || !strings.Contains(string(b), `"code":"`+c.code+`"`) && c.code != "" {
					t.Errorf("%d %s, %v; want %d %s", r.StatusCode, b, err, c.status, c.code)
				}
				visitor.hangsUp()
				took(t, began, "all of it", bodyWithin+closing)
				drip.Wait()
			})
		})
	}
}

func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	street(t, nil, func(t *testing.T, g *Gateway, at pipes, q full) {
		request := "GET /_anteroom/v1/rooms/shop/stream?ticket=" + q.ticket() + " HTTP/1.1\r\nHost: x\r\n\r\n"
		at.call(t, request) // and reads nothing
		stops := at.call(t, request)
		if line, err := bufio.NewReader(stops.answer().Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
			t.Fatalf("%q, %v", line, err)
		}
		synctest.Wait()
		if n := g.streams.Load(); n != 2 {
			t.Fatalf("%d streams, want 2", n)
		}
		time.Sleep(eventWithin + closing)
		if n := g.streams.Load(); n != 1 {
			t.Errorf("%d streams, want the one that was read once", n)
		}
		time.Sleep(g.c.Bounds.Heartbeat)
		if n := g.streams.Load(); n != 0 {
			t.Errorf("%d streams, want none", n)
		}
	})
}

// duplex has an origin answer before it has read the request's body.
func duplex(w http.ResponseWriter) {
	_ = http.NewResponseController(w).EnableFullDuplex()
	w.Header().Set("Connection", "close") // or net/http stumbles over the rest of the body
}

// forever writes until it cannot.
func forever(gone chan<- time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		duplex(w)
		w.Header().Set("Content-Length", "1000000000000")
		for {
			if _, err := w.Write(make([]byte, 10_000)); err != nil {
				gone <- time.Now()
				return
			}
		}
	}
}

func TestAnAnswerThatNobodyReadsIsGivenUp(t *testing.T) {
	gone := make(chan time.Time, 1)
	street(t, func(w http.ResponseWriter, r *http.Request) { forever(gone)(w, r) }, func(t *testing.T, _ *Gateway, at pipes, q full) {
		gone = make(chan time.Time, 1) // of this bubble
		began := time.Now()
		visitor := at.call(t, "GET /film HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\n\r\n")
		film := visitor.answer().Body
		for range 10 { // slow is not stopped
			time.Sleep(stallDefault / 2)
			if _, err := io.CopyN(io.Discard, film, 40_000); err != nil {
				t.Fatal(err)
			}
		}
		stopped := time.Now()
		took(t, stopped, "giving up at the origin", (<-gone).Sub(stopped)+stallDefault)
		took(t, began, "all of it", 6*stallDefault+closing)
	})
}

func TestAClientThatNeitherSendsNorReadsIsGivenUp(t *testing.T) {
	street(t, forever(make(chan time.Time, 1)), func(t *testing.T, _ *Gateway, at pipes, q full) {
		visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nContent-Length: 100\r\n\r\nx")
		visitor.answer()
		time.Sleep(stallDefault + bodyWithin + closing)
		visitor.hangsUpAfterMore()
	})
}

func TestAnUploadMayTakeItsTime(t *testing.T) {
	street(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %v", b, err)
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		visitor := at.call(t, "POST /photo HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nContent-Length: 100\r\n\r\n")
		for range 100 {
			time.Sleep(stallDefault - time.Second)
			visitor.say("x")
		}
		if b, err := io.ReadAll(visitor.answer().Body); string(b) != strings.Repeat("x", 100)+" <nil>" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// echo answers each line when it has come, which is before the body ends.
func echo(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex()
	_ = c.Flush()
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		_, _ = io.WriteString(w, in.Text()+" back\n")
		_ = c.Flush()
	}
}

func TestAnOriginMayAnswerBeforeItHasHeardAll(t *testing.T) {
	street(t, echo, func(t *testing.T, _ *Gateway, at pipes, q full) {
		visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nTransfer-Encoding: chunked\r\n\r\n")
		out := bufio.NewReader(visitor.answer().Body)
		for i := range 3 {
			time.Sleep(10 * stallDefault) // whoever has begun to answer decides on the pauses
			visitor.say(fmt.Sprintf("2\r\n%d\n\r\n", i))
			if line, err := out.ReadString('\n'); err != nil || line != fmt.Sprintf("%d back\n", i) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		visitor.say("0\r\n\r\n")
		if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

func TestAnUploadThatNobodyWantsAnyMoreIsGivenUp(t *testing.T) {
	street(t, func(w http.ResponseWriter, _ *http.Request) {
		duplex(w)
		w.Header().Set("Content-Length", "1048576")
		_, _ = w.Write(make([]byte, 1<<20))
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		began := time.Now()
		visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\nContent-Length: 100\r\n\r\nx")
		if n, err := io.Copy(io.Discard, visitor.answer().Body); n != 1<<20 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		took(t, began, "the answer", time.Second)
		visitor.hangsUp()
		took(t, began, "all of it", bodyWithin+closing)
	})
}

func TestAnUploadToAnOriginThatBreaksOffIsGivenUp(t *testing.T) {
	street(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		for _, headers := range []string{"Content-Length: 100\r\n\r\nx", "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"} {
			visitor := at.call(t, "POST / HTTP/1.1\r\nHost: shop.example.com\r\nCookie: anteroom_shop="+q.pass()+"\r\n"+headers)
			time.Sleep(stallDefault / 2)
			visitor.say("1\r\nx\r\n") // only now the transport notices
			began := time.Now()
			r := visitor.answer()
			if b, err := io.ReadAll(r.Body); r.StatusCode != 502 || err != nil || !strings.Contains(string(b), `"code":"origin_down"`) {
				t.Errorf("%d %s, %v", r.StatusCode, b, err)
			}
			took(t, began, "the answer", time.Second)
			visitor.hangsUp()
			took(t, began, "all of it", bodyWithin+closing)
		}
	})
}

// Where connections carry many streams, a deadline ends a stream even if
// nothing is being written.
func TestQuietStreamsGoOnOverHTTP2(t *testing.T) {
	street(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "%d\n", i)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Minute)
		}
	}, func(t *testing.T, _ *Gateway, at pipes, q full) {
		tr := &http.Transport{DialContext: at.dial, Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		open := func(path string) *http.Response {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example.com"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Cookie", "anteroom_shop="+q.pass())
			a, err := tr.RoundTrip(r)
			if err != nil || a.StatusCode != 200 || a.ProtoMajor != 2 {
				t.Fatalf("%s: %v, %v", path, a, err)
			}
			return a
		}
		if b, err := io.ReadAll(open("/slow").Body); string(b) != "0\n1\n2\n" || err != nil {
			t.Errorf("the origin's: %q, %v", b, err)
		}
		ours := open("/_anteroom/v1/rooms/shop/stream?ticket=" + q.ticket()).Body
		in := bufio.NewScanner(ours)
		for beats := 0; beats < 10; {
			if !in.Scan() {
				t.Fatalf("after %d beats: %v", beats, in.Err())
			}
			if in.Text() == ":" {
				beats++
			}
		}
		_ = ours.Close()
	})
}
