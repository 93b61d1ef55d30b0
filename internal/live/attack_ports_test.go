package live

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/client"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
)

// caller is a program of the stranger's that calls one port.
type caller struct {
	conn  *grpc.ClientConn
	token string
}

func (s *stranger) caller(from int, address string, c credentials.TransportCredentials, token string) caller {
	s.t.Helper()
	dial := s.dial(s.addr(from))
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(c),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return caller{conn, token}
}

// calls are what a stranger tries: all that programs may do, and nodes.
func (c caller) calls() map[string]func(context.Context) error {
	rooms, queues := anteroomv1.NewWaitingRoomClient(c.conn), anteroomv1.NewPriorityQueueClient(c.conn)
	return map[string]func(context.Context) error{
		"Join": func(ctx context.Context) error {
			_, err := rooms.Join(ctx, &anteroomv1.JoinRequest{Room: "shop"})
			return err
		},
		"Insert": func(ctx context.Context) error {
			_, err := queues.Insert(ctx, &anteroomv1.InsertRequest{Queue: "jobs"})
			return err
		},
		"DeleteMin": func(ctx context.Context) error {
			_, err := queues.DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "jobs"})
			return err
		},
		"Cancel": func(ctx context.Context) error {
			_, err := queues.Cancel(ctx, &anteroomv1.CancelRequest{Queue: "jobs", Id: "mine"})
			return err
		},
		"Stats": func(ctx context.Context) error { _, err := queues.Stats(ctx, &anteroomv1.StatsRequest{}); return err },
		"Check": func(ctx context.Context) error {
			_, err := authv3.NewAuthorizationClient(c.conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
				Request:           &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: []byte("GET"), Path: []byte("/")}},
				ContextExtensions: map[string]string{"room": "shop"},
			}})
			return err
		},
		"Forward": func(ctx context.Context) error {
			_, err := peerv1.NewPeerClient(c.conn).Forward(ctx, &peerv1.ForwardRequest{Request: &peerv1.Request{Op: peerv1.Op_OP_JOIN}})
			return err
		},
		"reflection": func(ctx context.Context) error {
			s, err := reflectionv1.NewServerReflectionClient(c.conn).ServerReflectionInfo(ctx)
			if err != nil {
				return err
			}
			_ = s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}) // Recv has its error
			_, err = s.Recv()
			return err
		},
	}
}

// try makes one of the calls.
func (c caller) try(t *testing.T, name string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if c.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
	}
	return c.calls()[name](ctx)
}

// Whoever reaches the port of the nodes, and is none, takes no slot, sees no item
// and learns of no service. (Anonymous joins there took every slot in 90 ms.)
func TestThePeerPortHasNothingForStrangers(t *testing.T) {
	s := newStranger(t)
	c := newCluster(t, 20)
	c.open(s)
	c.run(2) // which reach each other by that port
	put := dial(t, []string{c.nodes[0].grpc()}).Queue("jobs")
	if _, err := put.Put(t.Context(), client.New{ID: "mine"}); err != nil {
		t.Fatal(err)
	}

	plain := s.caller(7, c.nodes[0].at(2), insecure.NewCredentials(), "")
	var flood sync.WaitGroup
	for range 20 {
		flood.Go(func() {
			for range 10 {
				_ = plain.try(t, "Join")
			}
		})
	}
	flood.Wait()
	c.phase("200 joins at the peer port")
	for name := range plain.calls() {
		err := plain.try(t, name)
		if text := status.Convert(err).Message(); status.Code(err) != codes.Unimplemented || !strings.Contains(text, "node.grpc") {
			t.Errorf("%s = %v, want Unimplemented that names node.grpc", name, err)
		}
		private := s.caller(8, c.nodes[0].at(2), credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), "")
		if err := private.try(t, name); status.Code(err) != codes.Unavailable {
			t.Errorf("%s with TLS and no key = %v, want no connection", name, err)
		}
	}
	if r := c.nodes[0].room(); r.Active != 0 || r.Called != 0 || r.Queued != 0 {
		t.Errorf("the room after that: %+v, want nobody", r)
	}
	if n, err := put.Len(t.Context()); err != nil || n.Ready != 1 || n.Leased != 0 {
		t.Errorf("the queue after that: %+v, %v, want its one item", n, err)
	}
}

// certificate makes one for an address, and returns its files and who trusts it.
func (c *cluster) certificate(host string) (cert, key string, trust *x509.CertPool) {
	c.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(host)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		c.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	cert, key = c.file("grpc.pem"), c.file("grpc-key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{cert: public, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM(public)
	return cert, key, trust
}

// newToken has the command make one, and returns it and its line for the nodes.
func (c *cluster) newToken(flags ...string) (token, line string) {
	c.t.Helper()
	out, err := exec.Command(c.binary, append([]string{"keys", "token", "--json"}, flags...)...).Output()
	if err != nil {
		c.t.Fatal(err)
	}
	var made struct {
		Token, Name, Hash  string
		May, Rooms, Queues []string
	}
	if err := json.Unmarshal(out, &made); err != nil {
		c.t.Fatal(err)
	}
	return made.Token, fmt.Sprintf("    - {name: %s, hash: %q, may: [%s], rooms: [%s], queues: [%s]}\n",
		made.Name, made.Hash, strings.Join(made.May, ", "), strings.Join(made.Rooms, ", "), strings.Join(made.Queues, ", "))
}

// From another machine programs do what their tokens allow, and nothing without.
func TestProgramsFromElsewhereDoWhatTheirTokensAllow(t *testing.T) {
	s := newStranger(t)
	c := newCluster(t, 20)
	c.open(s)
	c.listen["grpc"] = s.host
	cert, key, trust := c.certificate(s.host)
	worker, first := c.newToken("--name", "worker", "--may", "take", "--queues", "jobs")
	other, second := c.newToken("--name", "other", "--may", "put,take,manage,view", "--queues", "other", "--rooms", "other")
	shop, third := c.newToken("--name", "shop", "--may", "put,authorize", "--queues", "j*", "--rooms", "shop")
	c.security = fmt.Sprintf("  tls: {grpc: {cert: %s, key: %s}}\n  tokens:\n%s%s%s", cert, key, first, second, third)
	c.run(1)

	at := c.nodes[0].at(4)
	private := func() credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: trust, ServerName: s.host})
	}
	tokens := map[string]string{"no": "", "a wrong": strings.Repeat("a", 8) + worker[8:], "the worker's": worker, "another's": other, "the shop's": shop}
	allowed := map[string]string{"the worker's": "DeleteMin", "the shop's": "Join Insert Check"}
	for whose, token := range tokens {
		program := s.caller(7, at, private(), token)
		for name := range program.calls() {
			err, code := program.try(t, name), codes.OK
			switch known := whose != "no" && whose != "a wrong"; {
			case !known:
				code = codes.Unauthenticated
			case name == "Forward": // which is the nodes'
				code = codes.Unimplemented
			case name == "reflection":
			case !strings.Contains(allowed[whose], name):
				code = codes.PermissionDenied
			}
			if status.Code(err) != code {
				t.Errorf("%s with %s token = %v, want %v", name, whose, err, code)
			}
		}
	}
	if _, err := healthv1.NewHealthClient(s.caller(7, at, private(), "").conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("a probe of health: %v", err)
	}
	if err := s.caller(7, at, insecure.NewCredentials(), shop).try(t, "Join"); status.Code(err) != codes.Unavailable {
		t.Errorf("in clear: %v, want no connection", err)
	}
	text := c.nodes[0].log.String()
	for whose, token := range tokens {
		if token != "" && strings.Contains(text, token) {
			t.Errorf("%s token is in the log", whose)
		}
	}
}

// Where programs could call from elsewhere without proof, or in clear, no node
// starts.
func TestAPortForProgramsWithoutProofDoesNotOpen(t *testing.T) {
	c := newCluster(t, 1)
	cert, key, _ := c.certificate("127.0.0.1")
	_, line := c.newToken("--name", "a", "--may", "put", "--queues", "jobs")
	for security, want := range map[string]string{
		"":                   "no security.tls.grpc (a certificate and its key) and no security.tokens (make one with: anteroom keys token)",
		"  tokens:\n" + line: "there is no security.tls.grpc (a certificate and its key);",
		fmt.Sprintf("  tls: {grpc: {cert: %s, key: %s}}\n", cert, key): "there is no security.tokens (make one with: anteroom keys token);",
	} {
		c.security, c.listen = security, map[string]string{"grpc": "0.0.0.0"}
		p := c.add()
		p.join(1)
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			t.Fatal("it runs")
		}
		if text := p.log.String(); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, want) {
			t.Errorf("exit code %d: %s\nwant %s", p.cmd.ProcessState.ExitCode(), text, want)
		}
	}
}
