package load

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// reachWithin bounds the question whether a gateway is there.
const reachWithin = 5 * time.Second

// Reach asks every gateway for the room, and says what is wrong with the first
// that does not have it.
func (g *Generator) Reach(ctx context.Context) error {
	for _, t := range g.targets {
		if err := g.reach(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (g *Generator) reach(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	transport := &http.Transport{DialContext: g.c.Dial, TLSClientConfig: t.tls, DisableKeepAlives: true}
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+roomPath(&g.c)+"status", nil)
	if err != nil {
		return err
	}
	a, err := client.Do(q)
	if err != nil {
		return fmt.Errorf("%s: %s", t.url, unreachable(err))
	}
	defer func() { _ = a.Body.Close() }() // it was only read
	var status struct{ Room, Code string }
	b, err := io.ReadAll(io.LimitReader(a.Body, bodyMax))
	if err == nil {
		err = json.Unmarshal(b, &status)
	}
	switch {
	case a.StatusCode >= 300 && a.StatusCode < 400 && a.Header.Get("Location") != "":
		return fmt.Errorf("%s sends us on to %s; give the URL of a gateway itself", t.url, a.Header.Get("Location"))
	case status.Code == "room_unknown":
		return fmt.Errorf("%s has no room %q; name one with --room", t.url, g.c.Room)
	case status.Code == "unavailable":
		return fmt.Errorf("%s does not serve yet: it waits for its cluster; try again when /readyz on its admin port says so", t.url)
	case err != nil || a.StatusCode != http.StatusOK || status.Room == "":
		return fmt.Errorf("%s does not answer as a gateway does (%s); give the URL of a node.gateway, by default port 8080, and its --prefix", t.url, a.Status)
	}
	return nil
}

// unreachable says why there was no answer, without what everybody knows, and
// what to do.
func unreachable(err error) string {
	const running = "; is a gateway running there?"
	asked, untrusted := new(url.Error), new(tls.CertificateVerificationError)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in " + reachWithin.String() + running
	case errors.As(err, &untrusted):
		return untrusted.Err.Error() + "; --insecure accepts it"
	case errors.As(err, &asked):
		err = asked.Err
	}
	return trouble(err) + running
}
