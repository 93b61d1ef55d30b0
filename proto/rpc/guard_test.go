package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/anteroom/anteroom/internal/tokens"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
	authv3 "github.com/anteroom/anteroom/proto/envoy/service/auth/v3"
	"github.com/anteroom/anteroom/proto/rpc"
)

// everything is a server with all services, none of which does anything, and
// the way to call it from an address.
func everything(t *testing.T, log *bytes.Buffer, all ...tokens.Token) (*grpc.Server, *grpc.ClientConn) {
	t.Helper()
	server, _ := rpc.NewServer(rpc.Config{
		WaitingRoom: anteroomv1.UnimplementedWaitingRoomServer{}, PriorityQueue: anteroomv1.UnimplementedPriorityQueueServer{},
		Authorization: envoy{}, Guard: rpc.NewGuard(tokens.NewSet(all), slog.New(slog.NewTextHandler(log, nil))),
	})
	return server, listen(t, server)(insecure.NewCredentials())
}

// envoy asks about the room that the route names, as package envoy does.
type envoy struct {
	authv3.UnimplementedAuthorizationServer
}

func (envoy) Check(ctx context.Context, q *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if err := rpc.AllowsRoom(ctx, q.GetAttributes().GetContextExtensions()["room"]); err != nil {
		return nil, err
	}
	return nil, status.Error(codes.Unimplemented, "not here")
}

// method is one of the server's, as its descriptor has it.
type method struct {
	name    string // /service/method
	request protoreflect.MessageType
	streams bool
}

// methods are all methods of all services of s.
func methods(t *testing.T, s *grpc.Server) []method {
	t.Helper()
	var all []method
	for name, info := range s.GetServiceInfo() {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range info.Methods {
			in := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(m.Name)).Input()
			kind, err := protoregistry.GlobalTypes.FindMessageByName(in.FullName())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, method{"/" + name + "/" + m.Name, kind, m.IsServerStream})
		}
	}
	return all
}

// call calls m with a token, about a room or a queue of that name.
func (m method) call(t *testing.T, conn *grpc.ClientConn, secret, about string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if secret != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
	}
	q := m.request.New().Interface()
	switch q := q.(type) {
	case *authv3.CheckRequest:
		q.Attributes = &authv3.AttributeContext{ContextExtensions: map[string]string{"room": about}}
	default:
		for _, field := range []protoreflect.Name{"room", "queue"} {
			if f := m.request.Descriptor().Fields().ByName(field); f != nil {
				q.ProtoReflect().Set(f, protoreflect.ValueOfString(about))
			}
		}
	}
	if !m.streams {
		return conn.Invoke(ctx, m.name, q, new(anteroomv1.AckResponse))
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, m.name)
	if err != nil {
		return err
	}
	if err := s.SendMsg(q); err != nil {
		return err
	}
	_ = s.CloseSend()
	return s.RecvMsg(new(anteroomv1.AckResponse))
}

// reason is the word for programs in an error.
func reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func token(may tokens.Rights, names ...string) (string, tokens.Token) {
	secret := tokens.New()
	h, _ := tokens.HashOf(secret)
	return secret, tokens.Token{Name: "bearer-" + may.String(), Hash: h, May: may, Rooms: names, Queues: names}
}

// Every method of every service is closed to who has no token, a wrong one, one
// without the right, or one for other rooms and queues; probes of health alone
// are not asked.
func TestEveryMethodAsksForItsRight(t *testing.T) {
	var log bytes.Buffer
	rights := []tokens.Right{tokens.Put, tokens.Take, tokens.Manage, tokens.Authorize, tokens.View, tokens.Operate}
	secrets, set := map[tokens.Right]string{}, []tokens.Token{}
	for _, r := range rights {
		secret, one := token(tokens.RightsOf(r), "mine", "team/*")
		secrets[r], set = secret, append(set, one)
	}
	server, conn := everything(t, &log, set...)
	may := map[string]string{ // methods by the initials of the rights of which any will do
		"/anteroom.v1.WaitingRoom/":         "p",
		"/anteroom.v1.WaitingRoom/Status":   "ptmvo",
		"/anteroom.v1.PriorityQueue/":       "mo",
		"/anteroom.v1.PriorityQueue/Insert": "p", "/anteroom.v1.PriorityQueue/DeleteMin": "t", "/anteroom.v1.PriorityQueue/Ack": "t",
		"/anteroom.v1.PriorityQueue/InsertBatch": "p", "/anteroom.v1.PriorityQueue/AckBatch": "t", "/anteroom.v1.PriorityQueue/ExtendBatch": "t",
		"/anteroom.v1.PriorityQueue/Session": "pt", "/anteroom.v1.PriorityQueue/Nack": "t", "/anteroom.v1.PriorityQueue/Extend": "t",
		"/anteroom.v1.PriorityQueue/Peek": "tmvo", "/anteroom.v1.PriorityQueue/Watch": "tmvo", "/anteroom.v1.PriorityQueue/DeadLetters": "tmvo",
		"/anteroom.v1.PriorityQueue/Len": "ptmvo", "/anteroom.v1.PriorityQueue/Position": "ptmvo", "/anteroom.v1.PriorityQueue/Stats": "ptmvo",
		"/envoy.service.auth.v3.Authorization/": "a",
		"/grpc.health.v1.Health/":               "ptmavo",
		"/grpc.reflection.v1.ServerReflection/": "ptmavo", "/grpc.reflection.v1alpha.ServerReflection/": "ptmavo",
	}
	seen := 0
	for _, m := range methods(t, server) {
		if m.name == healthv1.Health_Check_FullMethodName {
			if err := m.call(t, conn, "", ""); err != nil {
				t.Errorf("%s without a token: %v", m.name, err)
			}
			continue
		}
		want, ok := may[m.name]
		if !ok {
			want, ok = may[m.name[:strings.LastIndexByte(m.name, '/')+1]]
		}
		if !ok {
			t.Errorf("%s: this test does not know who may call it", m.name)
		}
		seen++
		refused := func(what string, err error, code codes.Code, why string) {
			t.Helper()
			if status.Code(err) != code || reason(err) != why {
				t.Errorf("%s %s: %v (%s), want %v, %s", m.name, what, err, reason(err), code, why)
			}
		}
		refused("without a token", m.call(t, conn, "", "mine"), codes.Unauthenticated, "token_required")
		refused("with a wrong token", m.call(t, conn, tokens.New(), "mine"), codes.Unauthenticated, "token_invalid")
		named := m.request.Descriptor().Fields().ByName("room") != nil || m.request.Descriptor().Fields().ByName("queue") != nil || strings.HasPrefix(m.name, "/envoy")
		for _, r := range rights {
			if !strings.ContainsRune(want, rune(r.String()[0])) {
				refused("with "+r.String(), m.call(t, conn, secrets[r], "mine"), codes.PermissionDenied, "not_allowed")
				continue
			}
			for _, about := range []string{"mine", "team/a"} {
				if err := m.call(t, conn, secrets[r], about); status.Code(err) == codes.PermissionDenied || status.Code(err) == codes.Unauthenticated {
					t.Errorf("%s with %v for %q: %v", m.name, r, about, err)
				}
			}
			for _, about := range []string{"other", "team", "Mine", ""} {
				if named {
					refused(fmt.Sprintf("with %v for %q", r, about), m.call(t, conn, secrets[r], about), codes.PermissionDenied, "not_allowed")
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d methods, want at least 30", seen)
	}
	for _, s := range secrets {
		if strings.Contains(log.String(), s) {
			t.Error("a token is in the log")
		}
	}
	if !strings.Contains(log.String(), "a program was refused") {
		t.Error("the log has no word of it")
	}
}

// What a caller without a token sends is not even read.
func TestRefusedCallsAreNotRead(t *testing.T) {
	_, one := token(tokens.RightsOf(tokens.Put), "*")
	_, conn := everything(t, &bytes.Buffer{}, one)
	large := &anteroomv1.InsertRequest{Queue: "jobs", Payload: make([]byte, 4<<20)}
	if _, err := anteroomv1.NewPriorityQueueClient(conn).Insert(t.Context(), large); reason(err) != "token_required" {
		t.Errorf("Insert = %v, want token_required, not a word on its size", err)
	}
}

// from makes connections come from an address.
type from struct {
	net.Listener
	at net.Addr
}

func (f from) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	return remote{c, f.at}, err
}

type remote struct {
	net.Conn
	at net.Addr
}

func (r remote) RemoteAddr() net.Addr { return r.at }

func TestWithoutTokensOnlyThisMachineMayCall(t *testing.T) {
	for address, want := range map[string]codes.Code{"127.0.0.1": codes.OK, "::1": codes.OK, "10.0.0.9": codes.Unauthenticated, "198.51.100.7": codes.Unauthenticated} {
		server, _ := rpc.NewServer(rpc.Config{WaitingRoom: room{}, Guard: rpc.NewGuard(tokens.NewSet(nil), slog.New(slog.DiscardHandler))})
		conn := listenAt(t, server, &net.TCPAddr{IP: net.ParseIP(address), Port: 1})(insecure.NewCredentials())
		_, err := anteroomv1.NewWaitingRoomClient(conn).Status(t.Context(), &anteroomv1.StatusRequest{Room: "shop"})
		if status.Code(err) != want {
			t.Errorf("from %s: %v, want %v", address, err, want)
		}
	}
}

// waiting holds every DeleteMin until the caller goes.
type waiting struct {
	anteroomv1.UnimplementedPriorityQueueServer
	here chan struct{}
}

func (w waiting) DeleteMin(ctx context.Context, _ *anteroomv1.DeleteMinRequest) (*anteroomv1.DeleteMinResponse, error) {
	w.here <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// One address has a share of the calls that a node carries out at a time, and
// gets it back.
func TestCallsUnderWayAreBoundedPerAddress(t *testing.T) {
	secret, one := token(tokens.RightsOf(tokens.Take), "*")
	w := waiting{here: make(chan struct{}, 10_000)}
	guard := rpc.NewGuard(tokens.NewSet([]tokens.Token{one}), slog.New(slog.DiscardHandler))
	server, _ := rpc.NewServer(rpc.Config{PriorityQueue: w, Guard: guard})
	c := anteroomv1.NewPriorityQueueClient(listenAt(t, server, &net.TCPAddr{IP: net.IPv4(198, 51, 100, 7), Port: 1})(insecure.NewCredentials()))
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret))
	defer cancel()
	take := func(ctx context.Context) error {
		_, err := c.DeleteMin(ctx, &anteroomv1.DeleteMinRequest{Queue: "jobs"})
		return err
	}
	const most = 2500
	done := make(chan error, most)
	for range most {
		go func() { done <- take(ctx) }()
	}
	for range most {
		<-w.here
	}
	more := make(chan error, 1)
	go func() { more <- take(ctx) }()
	select {
	case err := <-more:
		if reason(err) != "too_many_requests" || len(status.Convert(err).Details()) != 2 {
			t.Errorf("one more: %v, want too_many_requests and when to come again", err)
		}
	case <-w.here:
		t.Errorf("one more than %d of an address is under way", most)
	}
	cancel()
	for range most {
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("a call that was broken off: %v", err)
		}
	}
	again, end := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret), 20*time.Second)
	defer end()
	go func() { <-w.here; end() }()
	for reason(take(again)) == "too_many_requests" { // until the node has heard that they are gone
	}
	if !errors.Is(again.Err(), context.Canceled) {
		t.Error("the calls that are over still count")
		w.here <- struct{}{}
	}
}

// inSession answers each call of a session by asking whether it may be made.
type inSession struct {
	anteroomv1.UnimplementedPriorityQueueServer
}

func (inSession) Session(s grpc.BidiStreamingServer[anteroomv1.SessionRequest, anteroomv1.SessionResponse]) error {
	r, err := s.Recv()
	for _, c := range r.GetCalls() {
		for method, q := range map[string]any{
			anteroomv1.PriorityQueue_Insert_FullMethodName: c.GetInsert(), anteroomv1.PriorityQueue_Ack_FullMethodName: c.GetAck(),
		} {
			if q.(interface{ GetQueue() string }).GetQueue() == "" {
				continue
			}
			leave, err := rpc.AllowsCall(s.Context(), method, q)
			if err != nil {
				return err
			}
			leave()
		}
	}
	return err
}

// A call in a session takes the right, and the queue, that it would take alone.
func TestACallOfASessionAsksForItsRight(t *testing.T) {
	secret, putter := token(tokens.RightsOf(tokens.Put), "mine")
	insert := func(queue string) *anteroomv1.SessionCall {
		return &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Insert{Insert: &anteroomv1.InsertRequest{Queue: queue}}}
	}
	ack := &anteroomv1.SessionCall{Call: &anteroomv1.SessionCall_Ack{Ack: &anteroomv1.AckRequest{Queue: "mine"}}}
	for what, test := range map[string]struct {
		tokens []tokens.Token
		call   *anteroomv1.SessionCall
		want   string
	}{
		"what it may":      {[]tokens.Token{putter}, insert("mine"), ""},
		"another queue":    {[]tokens.Token{putter}, insert("other"), "not_allowed"},
		"another right":    {[]tokens.Token{putter}, ack, "not_allowed"},
		"no tokens at all": {nil, insert("other"), ""},
	} {
		server, _ := rpc.NewServer(rpc.Config{PriorityQueue: inSession{}, Guard: rpc.NewGuard(tokens.NewSet(test.tokens), slog.New(slog.DiscardHandler))})
		c := anteroomv1.NewPriorityQueueClient(listen(t, server)(insecure.NewCredentials()))
		s, err := c.Session(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&anteroomv1.SessionRequest{Calls: []*anteroomv1.SessionCall{test.call}}); err != nil {
			t.Fatal(err)
		}
		if _, err = s.Recv(); reason(err) != test.want || test.want == "" && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
	}
}
