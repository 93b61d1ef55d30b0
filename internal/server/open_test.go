package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/config"
)

// A node says at its start, in one line, what is open to whom.
func TestTheStartSaysWhatIsOpenToWhom(t *testing.T) {
	open := config.Default("a")
	open.Security.TLS.Gateway.Cert = "cert.pem"
	open.Security.TLS.Admin.Cert = "cert.pem"
	open.Security.AdminToken = config.NewSecret("0123456789abcdef")
	open.Security.Tokens = []config.Token{{Name: "app"}}
	for _, x := range []struct {
		c        config.Config
		at       Addresses
		profiles bool
		want     string
	}{
		{
			config.Default("a"),
			Addresses{Gateway: "[::]:8080", Admin: "127.0.0.1:9090", GRPC: "127.0.0.1:7002"},
			false,
			`gateway="[::]:8080, open to everyone" admin="127.0.0.1:9090, open to this machine" grpc="127.0.0.1:7002, open to this machine" peer=none gossip=none`,
		},
		{
			open,
			Addresses{Gateway: "10.0.0.1:443", Admin: "10.0.0.1:9090", GRPC: "10.0.0.1:7002", Peer: "10.0.0.1:7001", Gossip: "10.0.0.1:7946"},
			true,
			`gateway="10.0.0.1:443, open to everyone by https" admin="10.0.0.1:9090, open to the network with admin_token by https, profiles too" ` +
				`grpc="10.0.0.1:7002, open to the network with a token" peer="10.0.0.1:7001, open to members with the cluster's key" gossip="10.0.0.1:7946, open to the same"`,
		},
	} {
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, nil)).Info("listening", openTo(x.c, x.at, x.profiles)...)
		if got := b.String(); !strings.HasSuffix(got, "msg=listening "+x.want+"\n") || strings.Contains(got, "0123456789") {
			t.Errorf("%s, want %s", got, x.want)
		}
	}
}

func TestTheReleaseOfAVersion(t *testing.T) {
	for version, want := range map[string]string{
		"": "", "anteroom v1.2.3, go1.26.8 linux/amd64": "v1.2.3",
		"anteroom development, commit 791f0cf01234 with changes, go1.26.8 linux/amd64": "development, commit 791f0cf01234 with changes",
	} {
		if got := release(version); got != want {
			t.Errorf("release(%q) = %q, want %q", version, got, want)
		}
	}
}
