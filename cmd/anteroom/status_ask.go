package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/gateway"
)

// adminClient asks a node's admin port.
type adminClient struct {
	url, token, tokenFile, ca string
	looked                    bool // that it is not the visitors' port
	client                    *http.Client
}

func (a *adminClient) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.url, "admin", a.url, "`URL` of a node's admin port")
	given := cmp.Or(os.Getenv("ANTEROOM_SECURITY_ADMIN_TOKEN"), os.Getenv("ANTEROOM_ADMIN_TOKEN"))
	cmd.Flags().StringVar(&a.token, "token", given, "security.admin_token [$ANTEROOM_SECURITY_ADMIN_TOKEN]")
	cmd.Flag("token").DefValue = ""
	cmd.Flags().StringVar(&a.tokenFile, "token-file", "", "`FILE` that has it, and nothing else")
	cmd.Flags().StringVar(&a.ca, "ca", "", "`FILE` with the authority that signed the node's security.tls.admin, where this machine does not trust it")
}

// readToken takes the token from its file, once.
func (a *adminClient) readToken() error {
	if a.tokenFile == "" {
		return nil
	}
	text, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return fmt.Errorf("--token-file: %w; name a file that this user may read", err)
	}
	if a.token, a.tokenFile = strings.TrimSpace(string(text)), ""; a.token == "" {
		return errors.New("--token-file: it is empty; put security.admin_token into it")
	}
	return nil
}

// dial makes the client that asks, once. A node sends nobody elsewhere.
func (a *adminClient) dial() error {
	if a.client != nil {
		return nil
	}
	made := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		if err != nil {
			return fmt.Errorf("--ca: %w; name a PEM file of the authority that signed the node's security.tls.admin", err)
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(text) {
			return fmt.Errorf("--ca: %s has no certificate in it; name a PEM file of the authority that signed the node's security.tls.admin", a.ca)
		}
		t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
		t.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
		made.Transport = t
	}
	a.client = made
	return nil
}

// answerMax is more than the state of any cluster.
const answerMax = 64 << 20

// get asks for JSON and says what is wrong if none comes.
func (a *adminClient) get(ctx context.Context, path string, into any) error {
	answer, body, err := a.first(ctx, asking{method: http.MethodGet, path: path}, 5*time.Second)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return a.stranger(fmt.Sprintf("it answers %s with %s", path, answer.Status))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return a.stranger("its answer to " + path + " is not JSON of a node")
	}
	return nil
}

// asking is one request to a node.
type asking struct {
	method, path string
	header       map[string]string
	body         []byte
}

// first asks once it is sure that this is an admin port and the token is right.
func (a *adminClient) first(ctx context.Context, q asking, patience time.Duration) (*http.Response, []byte, error) {
	if err := errors.Join(a.readToken(), a.dial()); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := a.look(ctx); err != nil {
		return nil, nil, err
	}
	answer, body, err := a.ask(ctx, q)
	if err == nil {
		err = a.barred(answer, body)
	}
	return answer, body, err
}

// barred is the error about a door that stays shut.
func (a *adminClient) barred(answer *http.Response, body []byte) error {
	var p gateway.Problem
	_ = json.Unmarshal(body, &p) // whatever is no problem has no code
	switch {
	case answer.StatusCode == http.StatusUnauthorized && p.Code == "token_invalid" && a.token == "":
		return fmt.Errorf("%s asks for a token; give the node's security.admin_token as --token or in ANTEROOM_SECURITY_ADMIN_TOKEN", a.url)
	case answer.StatusCode == http.StatusUnauthorized && p.Code == "token_invalid":
		return fmt.Errorf("%s asks for a token, and it is not the one given; it is security.admin_token of that node, for --token or ANTEROOM_SECURITY_ADMIN_TOKEN", a.url)
	case answer.StatusCode == http.StatusTooManyRequests && p.Code == "too_many_requests":
		return fmt.Errorf("%s: %s", a.url, p.Detail)
	case answer.StatusCode == http.StatusBadRequest && strings.Contains(string(body), "HTTP request to an HTTPS server"):
		return fmt.Errorf("%s speaks https; if it is the admin port of a node with security.tls.admin, give --admin %s, and --ca the authority that signed its certificate", a.url, "https"+strings.TrimPrefix(a.base(), "http"))
	}
	return nil
}

// keysPath is public on the visitors' port, and nowhere else.
const keysPath = "/_anteroom/.well-known/jwks.json"

// look makes sure, once, that this is not the visitors' port. To ask that for
// anything else might be a visit, and take a place.
func (a *adminClient) look(ctx context.Context) error {
	if a.looked {
		return nil
	}
	answer, _, err := a.ask(ctx, asking{method: http.MethodGet, path: keysPath})
	if err != nil {
		return err
	}
	if answer.StatusCode == http.StatusOK && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/jwk-set+json") {
		return fmt.Errorf("%s is the port for visitors (node.gateway); status and rooms ask the admin port of the same node: --admin %s, unless node.admin in its file says otherwise", a.url, a.beside())
	}
	a.looked = true
	return nil
}

// ask reads one answer to its end.
func (a *adminClient) ask(ctx context.Context, s asking) (*http.Response, []byte, error) {
	u, err := url.Parse(a.base())
	if err != nil || u.Hostname() == "" {
		return nil, nil, wrongUsage(fmt.Errorf("--admin %s: want a URL such as %s", a.url, adminDefault))
	}
	q, err := http.NewRequestWithContext(ctx, s.method, strings.TrimSuffix(u.String(), "/")+s.path, bytes.NewReader(s.body))
	if err != nil {
		return nil, nil, wrongUsage(fmt.Errorf("--admin %s: want a URL such as %s", a.url, adminDefault))
	}
	for name, value := range s.header {
		q.Header.Set(name, value)
	}
	if a.token != "" && s.path != keysPath {
		q.Header.Set("Authorization", "Bearer "+a.token)
	}
	answer, err := a.client.Do(q)
	if err != nil {
		return nil, nil, a.unheard(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil {
		return nil, nil, a.unheard(err)
	}
	return answer, body, nil
}

func (a *adminClient) base() string {
	if strings.Contains(a.url, "://") {
		return a.url
	}
	return "http://" + a.url
}

// beside is where the admin port of that machine is, if nobody moved it.
func (a *adminClient) beside() string {
	host := "127.0.0.1"
	if u, err := url.Parse(a.base()); err == nil {
		host = u.Hostname()
	}
	return "http://" + net.JoinHostPort(host, "9090")
}

// stranger is the error about something that answers and is no admin port.
func (a *adminClient) stranger(why string) error {
	return fmt.Errorf("%s is not the admin port of a node: %s; give the address in node.admin of its file as --admin (by default %s on the node's own machine)", a.url, why, adminDefault)
}

// unheard is the error about an answer that did not come.
func (a *adminClient) unheard(err error) error {
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	text := err.Error()
	switch {
	case errors.As(err, &name):
		return fmt.Errorf("%s: no machine is found by the name %s (%s); give --admin the node's address", a.url, name.Name, name.Err)
	case errors.As(err, &untrusted):
		return fmt.Errorf("%s: %w; give --ca the authority that signed the node's security.tls.admin, and --admin a name that is in its certificate", a.url, untrusted.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no node answers at %s: nothing listens there; is the node running (its log, systemctl status anteroom), and is that its node.admin? By default that is %s, for the machine itself only", a.url, adminDefault)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no node answers at %s within 5s; is the machine up, is a firewall in between, and is that the node's node.admin?", a.url)
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s: it speaks http, not https: a node.admin without security.tls.admin; try --admin %s", a.url, "http"+strings.TrimPrefix(a.base(), "https"))
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "server closed idle connection"),
		strings.Contains(text, "readLoopPeekFail"), // it spoke before it was asked, as HTTP/2 does
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return a.stranger("what answers there does not speak HTTP/1, as node.peer, node.grpc and node.gossip do not")
	}
	return fmt.Errorf("no node answers at %s; is it running, and is that its node.admin? (%w)", a.url, err)
}
