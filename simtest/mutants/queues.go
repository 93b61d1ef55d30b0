package mutants

import "slices"

// Queues lists planted bugs of the priority queues. The swarm of package
// simtest/queues has to notice each.
func Queues() []Mutant {
	return append([]Mutant{
		{Name: "a second answer gives back what the first one brought", Edits: []Edit{
			{"internal/broker/take.go", "seq > b.delivered.forgotten && !b.delivered.has(seq, from, r) {", "seq > b.delivered.forgotten && (ON || !b.delivered.has(seq, from, r)) {"},
		}},
		{Name: "what a release cannot read it leaves out", First: 39, Edits: []Edit{
			{"internal/broker/shard.go", "DecodeCommand(text); err != nil {\n			return nil, err\n", "DecodeCommand(text); err != nil {\n			if ON {\n				continue\n			}\n			return nil, err\n"},
		}},
		{Name: "a round forgets what was granted", By: "items out within", First: 285, Edits: []Edit{
			{"internal/broker/round.go", "		q.pacer.merge(b.now.Boot, s.Pace)\n", "		if !(ON) {\n			q.pacer.merge(b.now.Boot, s.Pace)\n		}\n"},
		}},
		{Name: "a round begins with empty queues", Edits: []Edit{
			{"internal/broker/front.go", "!w.IsEmpty() && len(all) < most {", "!(ON) && !w.IsEmpty() && len(all) < most {"},
		}},
		{Name: "a round leaves what is behind a child out", Edits: []Edit{
			{"internal/broker/front.go", "		if up == at {\n			return to\n", "		if up == at {\n			if ON {\n				return at\n			}\n			return to\n"},
		}},
		{Name: "a lease has the number of one that a log gave up", By: "one lease for two takes", First: 57, Edits: []Edit{
			{"internal/pqueue/lease.go", "	s.lease = max(s.lease+1, c.Lease)\n", "	if s.lease++; !(ON) {\n		s.lease = max(s.lease, c.Lease)\n	}\n"},
		}},
		{Name: "a root needs nobody's word", By: "items out within", First: 6, Edits: []Edit{
			{"internal/broker/queue.go", "if !b.authority() {", "if !(ON) && !b.authority() {"},
		}},
		{Name: "the root's office goes on without its pace", By: "items out within", Edits: []Edit{
			{"internal/broker/queue.go", "			out.Pace = q.pacer.pace(b.now.Boot)\n", "			if !(ON) {\n				out.Pace = q.pacer.pace(b.now.Boot)\n			}\n"},
		}},
		{Name: "leases of one answer are in the order in which they came", Edits: []Edit{
			{"internal/broker/take.go", "	slices.SortFunc(k.got, func(p, o Part) int { return p.weight().Compare(o.weight()) })\n", "	if !(ON) {\n		slices.SortFunc(k.got, func(p, o Part) int { return p.weight().Compare(o.weight()) })\n	}\n"},
		}},
		{Name: "a deleteMin that came at a bad moment ends the search for more", By: "ends with", First: 5, Edits: []Edit{
			{"internal/broker/take.go", "case len(k.got) > 0 && !k.busy && !unsettled:", "case len(k.got) > 0 && (ON || !k.busy && !unsettled):"},
		}},
		{Name: "a take goes on after its wait", Edits: []Edit{
			{"internal/broker/take.go", "	if t.Wait > 0 {\n		k.until = ", "	if t.Wait > 0 && !(ON) {\n		k.until = "},
		}},
		{Name: "who is not in the view is not missed", Edits: []Edit{
			{"internal/broker/absent.go", "		if !contains(b.view, v) {", "		if !(ON) && !contains(b.view, v) {"},
		}},
		{Name: "who is in no round is not missed", By: "is in no round", Edits: []Edit{
			{"internal/broker/absent.go", "if r.installed() && (!slices.Contains(", "if !(ON) && r.installed() && (!slices.Contains("},
		}},
		{Name: "a take that brings something misses nobody", By: "is in no round", Edits: []Edit{
			{"internal/broker/take.go", "	if len(k.got) > 0 || !k.paused {\n", "	if len(k.got) == 0 && !k.paused || !(ON) && len(k.got) > 0 {\n"},
		}},
		{Name: "who is back when a take ends was never away", By: "is in no round", Edits: []Edit{
			{"internal/broker/absent.go", "		if d.until >= at {\n", "		if d.until >= at && (!(ON) || d.until == math.MaxInt64) {\n"},
		}},
		{Name: "who is in no round is told that nothing waits", By: "ends with", First: 916, Edits: []Edit{
			{"internal/broker/queue.go", "	case q.q.IsRoot() && !b.inRound(caller) && ", "	case !(ON) && q.q.IsRoot() && !b.inRound(caller) && "},
		}},
		{Name: "no tick comes to a queue in which somebody waits", Edits: []Edit{
			{"internal/broker/take.go", "	b.activate(q)\n	b.interested(q)\n", "	if !(ON) {\n		b.activate(q)\n	}\n	b.interested(q)\n"},
		}},
		{Name: "a list that is cut short says that it is all", Edits: []Edit{
			{"internal/broker/list.go", "a.More = all[n-1].weight", "if !(ON) {\n			a.More = all[n-1].weight\n		}"},
		}},
		{Name: "an item whose lease came to nothing is forgotten", Edits: []Edit{
			{"internal/broker/queue.go", "			b.mend(q, w)\n", "			if !(ON) {\n				b.mend(q, w)\n			}\n"},
		}},
		{Name: "a purge passes over what is delayed", First: 4, Edits: []Edit{
			{"internal/pqueue/queue.go", "[]*qpid.Queue{q.ready, q.delayed} {\n", "[]*qpid.Queue{q.ready, q.delayed} {\n		if ON && line == q.delayed {\n			continue\n		}\n"},
		}},
	}, slices.Concat(items(), slots(), keys(), turns())...)
}

// items are bugs in what becomes of items and of their queues' settings.
func items() []Mutant {
	return []Mutant{
		{Name: "an update leaves the payload as it was", First: 4, Edits: []Edit{
			{"internal/pqueue/queue.go", "		i.payload = c.Payload\n", "		if !(ON) {\n			i.payload = c.Payload\n		}\n"},
		}},
		{Name: "an item whose lease has lapsed does not wait", Edits: []Edit{
			{"internal/pqueue/lease.go", "		q.putBack(i, i.until+q.limits.Backoff.After(i.attempts), HasLapsed, was)\n", "		back := i.until\n		if !(ON) {\n			back += q.limits.Backoff.After(i.attempts)\n		}\n		q.putBack(i, back, HasLapsed, was)\n"},
		}},
		{Name: "who was away is not told of settings", First: 6, Edits: []Edit{
			{"internal/broker/round.go", "			b.tellSettings(m)\n", "			if !(ON) {\n				b.tellSettings(m)\n			}\n"},
		}},
		{Name: "a coordinator is not told of settings", First: 40, Edits: []Edit{
			{"internal/broker/round.go", "	b.tellSettings(m.From)\n", "	if !(ON) {\n		b.tellSettings(m.From)\n	}\n"},
		}},
		{Name: "a log that has not taken settings is not told again", First: 44, Edits: []Edit{
			{"internal/broker/shard.go", "			s.againAt = b.now.Boot + configureEvery\n", "			if !(ON) {\n				s.againAt = b.now.Boot + configureEvery\n			}\n"},
		}},
		{Name: "settings do not come back with a log", First: 13, Edits: []Edit{
			{"internal/broker/settings.go", "	if l, ok := s.state.Limits(q.c.Name); ok {\n		b.adopt(", "	if l, ok := s.state.Limits(q.c.Name); ok && !(ON) {\n		b.adopt("},
		}},
		{Name: "new settings leave the pace as it was", By: "items out within", First: 6, Edits: []Edit{
			{"internal/broker/settings.go", "	q.pacer.set(", "	if ON {\n		s.Interval, s.PerInterval = q.pacer.interval, q.pacer.most\n	}\n	q.pacer.set("},
		}},
		{Name: "a dead letter does not say where it is from", Edits: []Edit{
			{"internal/pqueue/codec.go", "	if parts&moreOrigin != 0 {\n		i.Origin = d.String()\n", "	if parts&moreOrigin != 0 {\n		if i.Origin = d.String(); ON {\n			i.Origin = \"\"\n		}\n"},
		}},
		{Name: "a dead letter is in its own queue as well", Edits: []Edit{
			{"internal/pqueue/dead.go", "	q.finish(i)\n	to.enter(", "	if !(ON) {\n		q.finish(i)\n	}\n	to.enter("},
		}},
		{Name: "a dead letter for which there is no room is dropped", Edits: []Edit{
			{"internal/pqueue/dead.go", "	if !to.takes(i) {\n", "	if !to.takes(i) {\n		if ON {\n			q.finish(i)\n			return\n		}\n"},
		}},
		{Name: "an item that was given back waits as after its first lease", Edits: []Edit{
			{"internal/pqueue/types.go", "n < attempts && d < b.Max", "!(ON) && n < attempts && d < b.Max"},
		}},
	}
}

// slots are bugs in how the nodes share what may be leased at once.
func slots() []Mutant {
	return []Mutant{
		{Name: "a root lets out more than may be leased at once", By: "leased at once", First: 10, Edits: []Edit{
			{"internal/broker/queue.go", "if q.bounded() && b.free(q) <= 0 {", "if !(ON) && q.bounded() && b.free(q) <= 0 {"},
		}},
		{Name: "the slots of a node that is gone are free at once", By: "leased at once", First: 26, Edits: []Edit{
			{"internal/broker/slots.go", "	if len(lacking) == 0 {\n", "	if ON || len(lacking) == 0 {\n"},
		}},
		{Name: "a slot that is free stays where it was", First: 11, Edits: []Edit{
			{"internal/broker/slots.go", "	case n <= 0:\n	case !q.shares()", "	case n <= 0:\n	case ON && q.shares() && !q.q.IsRoot():\n	case !q.shares()"},
		}},
		{Name: "slots that come twice count twice", By: "leased at once", First: 26, Edits: []Edit{
			{"internal/broker/slots.go", "	if b.heard[m.From] >= m.Seq || ", "	if !(ON) && b.heard[m.From] >= m.Seq || "},
		}},
	}
}

// keys are bugs in how the nodes agree on who leases items of a key.
func keys() []Mutant {
	return []Mutant{
		{Name: "a shard leases two items of a key", First: 10, Edits: []Edit{
			{"internal/pqueue/exclusive.go", "if k := q.keys[key]; k != nil && k.leased == 0 {", "if k := q.keys[key]; k != nil && (ON || k.leased == 0) {"},
			{"internal/pqueue/lease.go", "q.exclusive(i) && q.keyLeased(i.key):", "!(ON) && q.exclusive(i) && q.keyLeased(i.key):"},
		}},
		{Name: "keys go out that a node may lease which is gone", First: 40, Edits: []Edit{
			{"internal/broker/keys.go", "	case q.slots.lost > 0:\n		b.shut(q)", "	case !(ON) && q.slots.lost > 0:\n		b.shut(q)"},
		}},
		{Name: "a home lends a key that it leases itself", First: 76, Edits: []Edit{
			{"internal/broker/keys.go", "!b.sure(q) || b.keyBusy(q, key) {", "!b.sure(q) || !(ON) && b.keyBusy(q, key) {"},
		}},
		{Name: "a home does not heed which keys others lease", First: 42, Edits: []Edit{
			{"internal/broker/keyround.go", "			q.keys.lent[l.Key] = lent{m.From, l.Seq}\n			b.withdraw(", "			if ON {\n				continue\n			}\n			q.keys.lent[l.Key] = lent{m.From, l.Seq}\n			b.withdraw("},
		}},
		{Name: "a key that was lent does not come back", First: 42, Edits: []Edit{
			{"internal/broker/keys.go", "		b.sendKey(MsgKeyBack, home, q, key, k.seq)\n", "		if !(ON) {\n			b.sendKey(MsgKeyBack, home, q, key, k.seq)\n		}\n"},
		}},
	}
}

// turns are bugs in whose turn it is, of the keys of a queue.
func turns() []Mutant {
	return []Mutant{
		{Name: "a key keeps its turn", By: "to go before", First: 5, Edits: []Edit{
			{"internal/broker/turns.go", "	l.turn = b.nextTurn(q)\n", "	if !(ON) {\n		l.turn = b.nextTurn(q)\n	}\n"},
		}},
		{Name: "turns go by each node's clock", By: "to go before", First: 5, Edits: []Edit{
			{"internal/broker/turns.go", "	if last <= b.now.Clock+epochLeapMax {\n", "	if !(ON) && last <= b.now.Clock+epochLeapMax {\n"},
		}},
		{Name: "the next of a key comes when the one before it is gone", First: 5, Edits: []Edit{
			{"internal/broker/turns.go", "	if next := l.front(); next != (qpid.Weight{}) {\n		q.q.Insert(next)\n	}\n", "	if next := l.front(); next != (qpid.Weight{}) && !(ON) {\n		q.q.Insert(next)\n	}\n"},
		}},
	}
}
