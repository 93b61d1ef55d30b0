package webpush_test

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/webpush"
)

// BenchmarkSend is what a message costs a node: to encrypt and sign it, without what
// it takes to bring it to the push service.
func BenchmarkSend(b *testing.B) {
	browser, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	from := webpush.New(webpush.Config{
		Contact: "mailto:ops@example.com", Secrets: func() [][]byte { return [][]byte{[]byte("a secret of the cluster")} },
		Do: func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody}, nil
		},
	})
	enc := base64.RawURLEncoding.EncodeToString
	sub := webpush.Subscription{Endpoint: "https://fcm.googleapis.com/a", Key: from.PublicKey(), Keys: webpush.Keys{P256DH: enc(browser.PublicKey().Bytes()), Auth: enc(make([]byte, 16))}}
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if err := from.Send(ctx, sub, []byte("called")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/message")
}

// cpu is the processor time that this process has had.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
