package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestTheShopIsServedAlone(t *testing.T) {
	if os.Getenv("ANTEROOM_E2E") == "" {
		t.Skip("NOT RUN: a test with real sockets; set ANTEROOM_E2E=1")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"demo", "shop", "--listen", "127.0.0.1:0"}, out, io.Discard) }()
	line, err := bufio.NewReader(said).ReadString('\n')
	url := strings.TrimPrefix(strings.TrimSpace(line), "the shop is at ")
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("it says %q, %v", line, err)
	}
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !strings.Contains(string(page), "tea") {
		t.Errorf("%s: %v\n%.300s", answer.Status, err, page)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
