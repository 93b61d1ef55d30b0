package explore

import (
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/qpid"
)

// TestStatesDecideTheFuture checks what the exploration rests on; see audit.
func TestStatesDecideTheFuture(t *testing.T) {
	for name, m := range map[string]*model{"site": site(), "root": qpidRoot(), "take-over": takeOver()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.demand.most = 2_000
			_, c := explore(m)
			if len(c.merged) == 0 {
				t.Fatal("no state was reached in two ways")
			}
			if err := c.audit(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d crossings", len(c.merged))
		})
	}
}

// TestAuditNoticesIgnoredFields shows that the audit bites: a fingerprint that
// leaves out what matters takes two states for one.
func TestAuditNoticesIgnoredFields(t *testing.T) {
	for field, of := range map[string]string{"wave": "eviction.waves", "lead": "eviction.Node"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			m := founding()
			m.demand.most = 2_000
			m.lie.blind = map[string][]string{of: {field}}
			defer func() {
				if p := recover(); p != nil {
					t.Log("noticed when inputs were repeated: ", p)
				}
			}()
			_, c := explore(m)
			if c.audit() == nil {
				t.Errorf("nobody noticed that the fingerprint leaves out %s", field)
			}
		})
	}
}

// TestLiesAreFound shows that the promises bite: each lie takes away something
// that the protocol rests on, and one of the promises that it holds up breaks.
func TestLiesAreFound(t *testing.T) {
	few := founding()
	few.room.Target = 1
	tests := []struct {
		name  string
		model *model
		lie   lie
		want  []string
	}{
		{"the clock of a node stands still", partition(), lie{clock: stopped}, []string{"S1", "S9", "S12"}},
		{"commits call a side a quorum", amnesia(), lie{wire: onCommit(raiseGrade)}, []string{"S1", "S9", "S12"}},
		{"slots count one more", transfer(), lie{wire: onSlots(func(n int) int { return n + 1 })}, []string{"S3", "S1"}},
		{"slots get lost for good", site(), lie{wire: onSlots(func(int) int { return 0 })}, []string{"L3"}},
		{"commits tell everyone that the rest is heavy", qpidRoot(), lie{wire: onCommit(hideRest)}, []string{"S4"}},
		{"commits tell c something else", founding(), lie{wire: tellAnother}, []string{"S6"}},
		{"replies leave people out", few, lie{wire: onReply(hidePeople)}, []string{"S7"}},
		{"gathers ask for too small a promise", founding(), lie{wire: askLess}, []string{"S7", "refused"}}, // the cut is beyond that
		{"replies leave a slot out", transfer(), lie{wire: onReply(hideSlot)}, []string{"S9", "S3", "S1"}},
		{"replies of a node without memory say that it knows", amnesia(), lie{wire: onReply(claimKnowledge)}, []string{"S1", "S3", "S9", "S12"}},
		{"people are called twice", site(), lie{log: callTwice}, []string{"S10"}},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			tt.model.lie = tt.lie
			got, _ := explore(tt.model)
			if got.broken == nil {
				t.Fatalf("not found in %v", got)
			}
			promise, _, _ := strings.Cut(strings.TrimPrefix(got.broken.Error(), "once mended: "), ":")
			if !slices.Contains(tt.want, promise) || strings.Contains(got.broken.Error(), "leads elsewhere") {
				t.Errorf("found by %s, want one of %v: %v", promise, tt.want, got.broken)
			}
			t.Logf("found after %d states: %.300s", got.states, got.broken.Error())
		})
	}
}

func onReply(change func(*eviction.Reply)) func(eviction.Message) eviction.Message {
	return func(m eviction.Message) eviction.Message {
		if r, ok := m.Body.(*eviction.Reply); ok {
			lied := *r
			lied.Nodes, lied.Rooms = slices.Clone(r.Nodes), slices.Clone(r.Rooms)
			change(&lied)
			m.Body = &lied
		}
		return m
	}
}

func hideSlot(r *eviction.Reply) {
	for i := range r.Rooms {
		r.Rooms[i].Nodes = slices.Clone(r.Rooms[i].Nodes)
		for j := range r.Rooms[i].Nodes {
			r.Rooms[i].Nodes[j].Minted--
		}
	}
}

func claimKnowledge(r *eviction.Reply) {
	for i := range r.Nodes {
		if r.Nodes[i].Line.Founded() {
			r.Nodes[i].Knows, r.Nodes[i].Forgot = true, false
		}
	}
}

func hidePeople(r *eviction.Reply) {
	for i := range r.Rooms {
		r.Rooms[i].Nodes = slices.Clone(r.Rooms[i].Nodes)
		for j := range r.Rooms[i].Nodes {
			r.Rooms[i].Nodes[j].Queued = 0
		}
		r.Rooms[i].Front = eviction.Front{Complete: true}
	}
}

func askLess(m eviction.Message) eviction.Message {
	if g, ok := m.Body.(*eviction.Gather); ok {
		lied := *g
		lied.T -= 2_000_000
		m.Body = &lied
	}
	return m
}

func onSlots(total func(int) int) func(eviction.Message) eviction.Message {
	return func(m eviction.Message) eviction.Message {
		if s, ok := m.Body.(*eviction.Slots); ok {
			lied := *s
			lied.Total = total(s.Total)
			m.Body = &lied
		}
		return m
	}
}

func onCommit(change func(*eviction.Commit)) func(eviction.Message) eviction.Message {
	return func(m eviction.Message) eviction.Message {
		if c, ok := m.Body.(*eviction.Commit); ok {
			lied := *c
			lied.Rooms, lied.RestMin = slices.Clone(c.Rooms), slices.Clone(c.RestMin)
			change(&lied)
			m.Body = &lied
		}
		return m
	}
}

func hideRest(c *eviction.Commit) {
	for i := range c.RestMin {
		c.RestMin[i] = qpid.Empty(1 << 20)
	}
}

func raiseGrade(c *eviction.Commit) { c.Grade = max(c.Grade, eviction.Primary) }

func tellAnother(m eviction.Message) eviction.Message {
	if m.To.Name != "c" {
		return m
	}
	return onCommit(func(c *eviction.Commit) { c.HLC++ })(m)
}

// stopped is the clock of c, which stands still from the fifth second on.
func stopped(host int, now int64) int64 {
	if host == 2 {
		return min(now, ms(5000))
	}
	return now
}

func callTwice(log []node.Admission) []node.Admission {
	for _, l := range slices.Clone(log) {
		if l.Event == node.CalledIn {
			log = append(log, l)
		}
	}
	return log
}
