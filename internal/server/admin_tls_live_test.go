package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/server"
)

// Operators reach the port by HTTPS: the page, what it listens to, and a login that
// no browser sends in clear. In clear nothing is answered.
func TestTheAdminPortSpeaksHTTPS(t *testing.T) {
	r := newRig(t, 5)
	pair := server.Certificate(t)
	m := r.startWith(fmt.Sprintf(rigFile, r.origin.URL, r.limit)+
		fmt.Sprintf("security: {admin_token: 0123456789abcdef, tls: {admin: {cert: %q, key: %q}}}\n", pair.Cert, pair.Key), 1, 0)
	text, err := os.ReadFile(string(pair.Cert))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	for _, protocol := range []string{"h2", "http/1.1"} {
		// The certificate is for a name of its own.
		operator := &http.Client{
			Transport:     &http.Transport{ForceAttemptHTTP2: protocol == "h2", TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "x", NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 10 * time.Second,
		}
		at := "https://" + m.Addresses().Admin
		in, err := operator.PostForm(at+"/login", url.Values{"token": {"0123456789abcdef"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = in.Body.Close()
		kept := in.Cookies()
		if len(kept) != 1 || !kept[0].Secure || !strings.HasPrefix(kept[0].Name, "__Host-") {
			t.Fatalf("%s: %s, and the cookies %v; want one that is sent by HTTPS alone", protocol, in.Status, kept)
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/v1/stream", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		q.AddCookie(kept[0])
		events, err := operator.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(events.Body).ReadString('\n'); err != nil || events.StatusCode != http.StatusOK {
			t.Errorf("%s: the stream answers %s with %q (%v)", protocol, events.Status, line, err)
		}
		_ = events.Body.Close()
	}
	clear, err := http.Get("http://" + m.Addresses().Admin + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = clear.Body.Close()
	if clear.StatusCode != http.StatusBadRequest {
		t.Errorf("in clear the port answers %s; want 400", clear.Status)
	}
}
