package wire_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/ticket"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
	"github.com/anteroom/anteroom/proto/wire"
	"github.com/anteroom/anteroom/qpid"
)

// bodies returns an empty body of every kind.
func bodies() []eviction.Body {
	return []eviction.Body{
		&eviction.Gather{}, &eviction.Reply{}, &eviction.Commit{}, &eviction.Nack{}, &eviction.Probe{}, &eviction.ProbeAck{},
		&eviction.Urgent{}, &eviction.Slots{}, &eviction.SlotsAck{}, &eviction.RoomQPID{}, &eviction.SyncRequest{}, &eviction.SyncReply{},
		&eviction.SyncAck{}, &eviction.Goodbye{}, &eviction.Used{}, &eviction.UsedAck{},
		&eviction.Slots{Visits: []eviction.Visit{{}}}, &eviction.Places{}, &eviction.Ask{},
		&eviction.Copies{}, &eviction.CopiesAck{},
	}
}

// kindsInSource reads from package eviction's source which types are bodies.
func kindsInSource(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../eviction/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %v, %v", files, err)
	}
	var kinds []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "Kind" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				kinds = append(kinds, star.X.(*ast.Ident).Name)
			}
		}
	}
	return kinds
}

func TestEveryKindOfBodyHasAConversion(t *testing.T) {
	here := make(map[string]bool)
	for _, b := range bodies() {
		here[reflect.TypeOf(b).Elem().Name()] = true
		if _, err := wire.FromBody(b); err != nil {
			t.Errorf("FromBody(%T): %v", b, err)
		}
	}
	for _, kind := range kindsInSource(t) {
		if !here[kind] {
			t.Errorf("eviction.%s is not among the kinds that are tested here; add it, and its conversion", kind)
		}
	}
	if fields := (&peerv1.Body{}).ProtoReflect().Descriptor().Fields().Len(); fields != len(bodies()) {
		t.Errorf("peer.v1.Body has %d kinds, package eviction %d", fields, len(bodies()))
	}
}

type strange struct{}

func (strange) Kind() string { return "strange" }

func TestUnknownKindsAreToldApart(t *testing.T) {
	if _, err := wire.FromBody(strange{}); !errors.Is(err, wire.ErrKind) {
		t.Errorf("FromBody of a kind of its own = %v, want ErrKind", err)
	}
	// Field 1000 stands for a kind of the future.
	if _, err := wire.Unmarshal([]byte{0xc2, 0x3e, 0}); !errors.Is(err, wire.ErrKind) {
		t.Errorf("Unmarshal of a kind of the future = %v, want ErrKind", err)
	}
}

// fill sets v to something that a node might send. It goes by reflection, so
// that a field which is added and not converted fails the round trip.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch p := v.Addr().Interface().(type) {
	case *eviction.Grade:
		*p = eviction.Grade(rapid.IntRange(0, int(eviction.Unanimous)).Draw(t, name))
		return
	case *eviction.Method:
		*p = eviction.Method(rapid.IntRange(0, int(eviction.Reject)).Draw(t, name))
		return
	case *eviction.Algorithm:
		*p = eviction.Algorithm(rapid.IntRange(0, int(eviction.ByQPID)).Draw(t, name))
		return
	case *eviction.Says:
		*p = eviction.Says(rapid.IntRange(0, int(eviction.IsCovered)).Draw(t, name))
		return
	case *eviction.Policy:
		*p = eviction.Policy(rapid.IntRange(0, int(eviction.Stop)).Draw(t, name))
		return
	case *eviction.Mode:
		*p = eviction.Mode(rapid.IntRange(0, int(eviction.Deleted)).Draw(t, name))
		return
	case *ticket.Op:
		*p = ticket.Op(rapid.IntRange(0, int(ticket.Take)).Draw(t, name))
		return
	case *eviction.EarlierState:
		*p = eviction.EarlierState(rapid.IntRange(0, int(eviction.EarlierResumed)).Draw(t, name))
		return
	case *ticket.State:
		*p = ticket.State(rapid.IntRange(0, int(ticket.Admitted)).Draw(t, name))
		return
	case *qpid.Kind:
		*p = qpid.Kind(rapid.IntRange(int(qpid.MsgUpdate), int(qpid.MsgTaken)).Draw(t, name))
		return
	case *qpid.Outcome: // settled with the kind
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name)
		}
		if m, ok := v.Addr().Interface().(*qpid.Message); ok && m.Kind == qpid.MsgTaken {
			m.Outcome = qpid.Outcome(rapid.IntRange(int(qpid.Taken), int(qpid.Refused)).Draw(t, name))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name)
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, name); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), name)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 20, 60).Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32Range(0, math.MaxFloat32).Draw(t, name)))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(0, math.MaxFloat64).Draw(t, name))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Max(1<<v.Type().Bits()-1).Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(number(name).Draw(t, name))
	default:
		t.Fatalf("%s: a %v is not made here", name, v.Type())
	}
}

// number returns what the int field of that name may hold.
func number(name string) *rapid.Generator[int64] {
	switch {
	case strings.HasSuffix(name, ".Index") || name == "Move.From" || name == "Move.To" || name == "Commit.Outvoted":
		return rapid.Int64Range(0, 4095)
	case strings.HasPrefix(name, "Answer.") || strings.HasPrefix(name, "Wait."):
		return rapid.Int64Min(0)
	}
	return rapid.Int64()
}

func TestBodiesSurviveTheWire(t *testing.T) {
	for _, kind := range bodies() {
		t.Run(kind.Kind(), rapid.MakeCheck(func(t *rapid.T) {
			body := reflect.New(reflect.TypeOf(kind).Elem())
			fill(t, body.Elem(), kind.Kind())
			want := body.Interface().(eviction.Body)
			data, err := wire.Marshal(want)
			if err != nil {
				t.Fatalf("Marshal: %v", err)
			}
			got, err := wire.Unmarshal(data)
			if err != nil {
				t.Fatalf("Unmarshal: %v", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("changed on the way (-sent +received):\n%s", diff)
			}
		}))
	}
}

// What is left out because the first node has the same comes back.
func TestNodesThatAreLikeTheFirstSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n eviction.NodeReply
		var rn eviction.RoomNode
		fill(t, reflect.ValueOf(&n).Elem(), "node")
		fill(t, reflect.ValueOf(&rn).Elem(), "room")
		want := &eviction.Reply{Rooms: []eviction.RoomReply{{Room: "shop"}}}
		for i := range 5 {
			a, b := n, rn
			a.Index, b.Index = i, i
			switch at := fmt.Sprint("other", i); rapid.IntRange(0, 9).Draw(t, at) {
			case 0:
				a.Line.Stamp++
			case 1:
				a.Knows = !a.Knows
			case 2:
				a.Since++
			case 3:
				a.Expect, b.TTL = 77, 77
			case 4:
				b.Holds.Num++
			case 5:
				b.Version.Stamp++
			case 6:
				b.Sum++
			case 7:
				b.Line.Stamp++
			case 8:
				a.Joins = !a.Joins
			}
			a.Clock, a.HLC = a.Clock+int64(7*i), a.HLC-uint64(5*i)
			b.First = rapid.SampledFrom([]uint64{0, 1, 5, b.First, b.First + 3, math.MaxUint64}).Draw(t, "first")
			want.Nodes, want.Rooms[0].Nodes = append(want.Nodes, a), append(want.Rooms[0].Nodes, b)
		}
		data, err := wire.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Unmarshal(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(eviction.Body(want), got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestRequestsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want ticket.Request
		fill(t, reflect.ValueOf(&want).Elem(), "request")
		got, err := wire.ToRequest(wire.FromRequest(want))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("ToRequest: %v (-sent +received):\n%s", err, diff)
		}
	})
}

func TestAnswersSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want ticket.Answer
		fill(t, reflect.ValueOf(&want).Elem(), "answer")
		got, err := wire.ToAnswer(wire.FromAnswer(want))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("ToAnswer: %v (-sent +received):\n%s", err, diff)
		}
	})
}

func TestErrorsKeepTheirIdentity(t *testing.T) {
	for _, want := range []error{
		ticket.ErrRoomUnknown, ticket.ErrExpired, ticket.ErrUsed, ticket.ErrNotCalled, ticket.ErrPassExpired, ticket.ErrQueueFull,
		ticket.ErrUnavailable, ticket.ErrRejected, ticket.ErrBusy,
	} {
		got := wire.ToError(wire.FromError(fmt.Errorf("room shop: %w", want)))
		if !errors.Is(got, want) {
			t.Errorf("%q became %q", want, got)
		}
	}
	if got := wire.FromError(errors.New("a disk is full")); got != peerv1.Refusal_REFUSAL_UNSPECIFIED {
		t.Errorf("an error of its own became %v", got)
	}
	for _, unknown := range []peerv1.Refusal{-1, 0, 1000} {
		if got := wire.ToError(unknown); !errors.Is(got, ticket.ErrUnavailable) {
			t.Errorf("ToError(%d) = %v, want ErrUnavailable", unknown, got)
		}
	}
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	long := strings.Repeat("x", 1000)
	commit := func(c *peerv1.Commit) *peerv1.Body { return &peerv1.Body{Kind: &peerv1.Body_Commit{Commit: c}} }
	reply := func(r *peerv1.RoomReply) *peerv1.Body {
		return &peerv1.Body{Kind: &peerv1.Body_Reply{Reply: &peerv1.Reply{Rooms: []*peerv1.RoomReply{r}}}}
	}
	qpidMessage := func(m *peerv1.RoomQPID) *peerv1.Body { return &peerv1.Body{Kind: &peerv1.Body_Qpid{Qpid: m}} }
	for name, body := range map[string]*peerv1.Body{
		"name too long":        {Kind: &peerv1.Body_Urgent{Urgent: &peerv1.Urgent{Room: long}}},
		"short weight":         qpidMessage(&peerv1.RoomQPID{Kind: 1, Weight: make([]byte, 23)}),
		"no kind":              qpidMessage(&peerv1.RoomQPID{}),
		"kind too high":        qpidMessage(&peerv1.RoomQPID{Kind: 5}),
		"negative kind":        qpidMessage(&peerv1.RoomQPID{Kind: -1}),
		"taken, no outcome":    qpidMessage(&peerv1.RoomQPID{Kind: 4}),
		"update with outcome":  qpidMessage(&peerv1.RoomQPID{Kind: 1, Outcome: 1}),
		"no grade":             commit(&peerv1.Commit{}),
		"grade too high":       commit(&peerv1.Commit{Grade: 5}),
		"half a weight":        commit(&peerv1.Commit{Grade: 1, RestMin: make([]byte, 36)}),
		"rate not a number":    commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{Rate: math.NaN()}}}),
		"endless rate":         commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{Rate: math.Inf(1)}}}),
		"no method":            commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{Config: &peerv1.Room{}}}}),
		"index too high":       commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{Burn: []*peerv1.Deal{{Index: 1 << 31}}}}}),
		"too many accounts":    commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{Born: make([]uint64, 5000)}}}),
		"front without weight": reply(&peerv1.RoomReply{Front: &peerv1.Front{Indexes: []uint32{1}}}),
		"digest without ties":  reply(&peerv1.RoomReply{Digest: &peerv1.Digest{Stamps: []uint64{1}, Ranks: []int64{0}}}),
		"slots of nobody":      reply(&peerv1.RoomReply{Nets: &peerv1.Nets{Slots: []int64{1}}}),
		"runs without numbers": commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{BornRuns: []uint32{1}}}}),
		"a run without end":    commit(&peerv1.Commit{Grade: 1, Rooms: []*peerv1.RoomCommit{{Born: []uint64{1}, BornRuns: []uint32{1 << 31}}}}),
		"weight without front": reply(&peerv1.RoomReply{Front: &peerv1.Front{Weights: make([]byte, 24)}}),
	} {
		if b, err := wire.ToBody(body); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: ToBody = %v, %v, want ErrMalformed", name, b, err)
		}
	}
	if _, err := wire.Unmarshal([]byte{0x0a, 0xff}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("Unmarshal of half a body = %v, want ErrMalformed", err)
	}
	if _, err := wire.ToMember(nil); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("ToMember of nobody = %v, want ErrMalformed", err)
	}
}

func TestMalformedAnswersAreRefused(t *testing.T) {
	for name, p := range map[string]*peerv1.Answer{
		"no state":       {},
		"negative place": {Standing: 1, Position: -1},
		"negative wait":  {Standing: 1, WaitP50: -int64(time.Second)},
		"long text":      {Standing: 1, Paused: strings.Repeat("x", 4096)},
		"three homes":    {Standing: 1, Ticket: &peerv1.Ticket{Past: make([]*peerv1.Member, 3)}},
	} {
		if _, err := wire.ToAnswer(p); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: ToAnswer = %v, want ErrMalformed", name, err)
		}
	}
	if _, err := wire.ToRequest(&peerv1.Request{Op: 1, Id: make([]byte, 15)}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("ToRequest with a short id = %v, want ErrMalformed", err)
	}
	if _, err := wire.ToRequest(&peerv1.Request{Op: 2, Listener: &peerv1.Member{Name: strings.Repeat("x", 4096)}}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("ToRequest with a listener of a long name = %v, want ErrMalformed", err)
	}
	if _, _, err := wire.ToHint(&peerv1.Hint{Room: "shop", Id: make([]byte, 15)}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("ToHint with a short id = %v, want ErrMalformed", err)
	}
}

func FuzzBody(f *testing.F) {
	for _, b := range bodies() {
		data, err := wire.Marshal(b)
		if err != nil && !strings.HasPrefix(b.Kind(), "qpid") {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := wire.Unmarshal(data)
		if err != nil {
			return
		}
		again, err := wire.Marshal(once)
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		twice, err := wire.Unmarshal(again)
		if diff := cmp.Diff(once, twice); diff != "" || err != nil {
			t.Fatalf("decoded otherwise the second time: %v\n%s", err, diff)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var p peerv1.Request
		if proto.Unmarshal(data, &p) != nil {
			return
		}
		once, err := wire.ToRequest(&p)
		if err != nil {
			return
		}
		twice, err := wire.ToRequest(wire.FromRequest(once))
		if once != twice || err != nil {
			t.Fatalf("decoded %v, then %v, %v", once, twice, err)
		}
	})
}

func FuzzPeer(f *testing.F) {
	b, err := proto.Marshal(wire.FromPeer(eviction.Peer{Member: eviction.Member{Name: "a", Boot: 1}, Start: 2}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p peerv1.PeerInfo
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		if who, err := wire.ToPeer(&p); err == nil {
			if again, err := wire.ToPeer(wire.FromPeer(who)); again != who || err != nil {
				t.Errorf("%v became %v, %v", who, again, err)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var p peerv1.Answer
		if proto.Unmarshal(data, &p) != nil {
			return
		}
		once, err := wire.ToAnswer(&p)
		if err != nil {
			return
		}
		twice, err := wire.ToAnswer(wire.FromAnswer(once))
		if once != twice || err != nil {
			t.Fatalf("decoded %v, then %v, %v", once, twice, err)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	list := make([]eviction.Member, 16)
	for i := range list {
		list[i] = eviction.Member{Name: qpid.NodeID(fmt.Sprintf("node-%d", i)), Boot: uint64(i)}
	}
	digest := &eviction.Digest{Marks: make([]eviction.Mark, 150), Length: 20_000}
	for i := range digest.Marks {
		digest.Marks[i] = eviction.Mark{Key: eviction.Key{Stamp: 1_700_000_000_000_000 + 50_000*uint64(i), Tie: uint32(i) << 20}, Rank: i * i / 2}
	}
	commit := &eviction.Commit{Rooms: []eviction.RoomCommit{{Room: "shop", Born: make([]uint64, 16), Digest: digest, First: make([]int, 16)}}}
	for name, body := range map[string]eviction.Body{
		"urgent": &eviction.Urgent{Room: "shop"},
		"gather": &eviction.Gather{List: list, Rooms: []eviction.RoomGather{{Room: "shop", Want: 200}}},
		"commit": commit,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data, err := wire.Marshal(body)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := wire.Unmarshal(data); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(data)))
			}
		})
	}
}
