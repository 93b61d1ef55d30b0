package load

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
)

// A gateway that says more than it was asked for is not believed: the next
// answer would be taken for that to another question.
func TestMoreThanOneAnswerEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		dials := 0
		talk := func(conn net.Conn) {
			in := bufio.NewReader(conn)
			for {
				if _, err := http.ReadRequest(in); err != nil {
					_ = conn.Close()
					return
				}
				const text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
				if _, err := conn.Write([]byte(text + "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")); err != nil {
					return
				}
			}
		}
		w := wire{ctx: ctx, to: newTarget(&Config{Room: "shop", Prefix: "/_anteroom"}, &url.URL{Scheme: "http", Host: "a"})}
		w.dial = func(context.Context, string, string) (net.Conn, error) {
			dials++
			here, there := net.Pipe()
			go talk(there)
			return here, nil
		}
		for range 3 {
			if p, err := w.ask(join, nil); err != nil || p.status != 200 || string(p.body) != "{}" {
				t.Errorf("answer %+v, %v", p, err)
			}
		}
		if dials != 3 || w.lost != 3 {
			t.Errorf("%d connections, %d lost, want 3", dials, w.lost)
		}
		w.shut()
		cancel()
	})
}
