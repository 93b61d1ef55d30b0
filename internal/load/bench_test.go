package load_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/load"
)

// canned answers requests with as little work as possible: what is measured is
// the generator, and a socket.
func canned(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	const body = `{"room":"shop","state":"waiting","ticket":"%s","position":1,"people_ahead":0,"queued":0,"refresh_interval_seconds":3600,` +
		`"joined_at":"2026-11-21T12:19:15.190172Z","last_updated":"2026-11-21T12:19:15.190187Z","queueing_method":"fifo","cfWaitingRoom":{"inWaitingRoom":true,"x":"%s"}}`
	text := fmt.Sprintf(body, strings.Repeat("t", 150), strings.Repeat("x", 800))
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\n\r\n" + text)
	in := bufio.NewReader(conn)
	for {
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= 2 {
				break
			}
			if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(n)))
			}
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// Ten thousand people ask as often as the generator manages, over 64 connections,
// of a server that costs next to nothing.
func BenchmarkCheckIns(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go canned(conn)
		}
	}()
	defer func() { _ = l.Close() }()
	for b.Loop() {
		g, err := load.New(load.Config{
			URLs: []string{l.Addr().String()}, Room: "shop",
			Arrivals: load.Arrivals{Users: 10_000, Duration: time.Second},
			Manners:  load.Manners{CheckInEvery: time.Microsecond},
		})
		if err != nil {
			b.Fatal(err)
		}
		r := g.Run(b.Context())
		n := r.Requests["check_in"].Count + r.Requests["join"].Count
		b.ReportMetric(float64(n)/r.Seconds, "requests/s")
		b.ReportMetric(0, "ns/op")                                    // each takes a second
		b.ReportMetric(1e6*r.CPUSeconds/float64(n), "cpu-µs/request") // both ends
	}
}
