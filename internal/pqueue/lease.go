package pqueue

// leaseOut leases a ready item. A taker that repeats itself while it has the
// lease is given the same one again.
//
// Numbers of leases go up, also for a shard that begins again with less than it had,
// from a copy or from a log whose end was given up: else a new lease could have the
// number of one that is forgotten, and whoever holds that could end it. So c.Lease
// goes by the clock. (In logs of before it is 0.)
func (q *queue) leaseOut(c Command) Result {
	i := q.items[c.Number]
	switch {
	case c.For <= 0 || c.For > q.limits.LeaseMax:
		return Result{Code: Invalid}
	case i != nil && i.state == Leased && i.taker == c.Taker:
		return Result{Number: i.number, State: Leased, Lease: i.lease, Until: i.until, Items: []Item{i.copied()}}
	case i == nil || i.state != Ready || q.exclusive(i) && q.keyLeased(i.key):
		return Result{Code: NotReady}
	case q.mode.Mode == Paused:
		return Result{Code: IsPaused}
	case q.limits.InFlightMax > 0 && q.leased >= q.limits.InFlightMax:
		return Result{Code: AllLeased}
	}
	s, was := q.shard, i.before()
	s.lease = max(s.lease+1, c.Lease)
	i.lease, i.until, i.taker = s.lease, s.now+c.For, c.Taker
	i.attempts++
	q.move(i, Leased)
	q.counters.Leased++
	q.tell(WasLeased, i, was)
	return Result{Number: i.number, State: Leased, Lease: i.lease, Until: i.until, Items: []Item{i.copied()}}
}

// settle does what the holder of a lease says. A lease that has lapsed is as
// good as ever for an Ack, as long as nobody else was given the item.
func (q *queue) settle(c Command) Result {
	i := q.items[c.Number]
	if i == nil {
		f, ok := q.finished.find(c.Number)
		switch {
		case !ok:
			return Result{Code: ItemUnknown}
		case c.Op == OpAck && f.acked && f.lease == c.Lease:
			return Result{Number: c.Number, State: Finished}
		}
		return Result{Code: ItemFinished, Number: c.Number, State: Finished}
	}
	if i.lease != c.Lease || c.Lease == 0 || i.state != Leased && c.Op != OpAck {
		return Result{Code: LeaseLost, Number: i.number, State: i.state}
	}
	was, died := i.before(), q.counters.Died
	switch c.Op {
	case OpAck:
		q.finish(i)
		q.finished.ack(i.number)
		q.counters.Acked++
		q.tell(WasAcked, i, was)
	case OpNack:
		q.weigh(-i.cost())
		i.reason = c.Text
		q.weigh(i.cost())
		q.counters.Nacked++
		back := q.shard.now + c.For
		if c.For == 0 {
			back += q.limits.Backoff.After(i.attempts)
		}
		q.putBack(i, back, WasNacked, was)
	case OpRelease:
		i.attempts--
		q.counters.Leased--
		q.move(i, i.stands())
		q.tell(WasNacked, i, was)
	default: // OpExtend
		if c.For <= 0 || c.For > q.limits.LeaseMax {
			return Result{Code: Invalid}
		}
		i.until = q.shard.now + c.For
		q.shard.due.set(i, i.until)
		q.tell(WasExtended, i, was)
	}
	r := Result{Number: i.number, State: i.state, Lease: i.lease, Until: i.until}
	if q.counters.Died > died {
		r.State = Dead // wherever it is now
	}
	return r
}

// putBack ends a lease without success. The item is back in line at a time.
func (q *queue) putBack(i *item, back int64, k Kind, was told) {
	now := q.shard.now
	if i.expires != 0 && i.expires <= now {
		q.finish(i)
		q.counters.Expired++
		q.tell(HasExpired, i, was)
		return
	}
	if q.limits.AttemptsMax > 0 && int(i.attempts) >= q.limits.AttemptsMax {
		if !q.crowded(i) {
			q.die(i, k, was)
			return
		}
		back = max(back, now+forwardEvery)
	}
	if back > now {
		i.notBefore = max(i.notBefore, back)
	}
	q.move(i, i.stands())
	q.tell(k, i, was)
}

// fallDue does what time brings to i.
func (q *queue) fallDue(i *item) {
	was, now := i.before(), q.shard.now
	switch {
	case i.state == Leased:
		q.counters.Lapsed++
		q.putBack(i, i.until+q.limits.Backoff.After(i.attempts), HasLapsed, was)
	case i.state == Dead:
		q.goOn(i)
	case i.expires != 0 && i.expires <= now:
		q.finish(i)
		q.counters.Expired++
		q.tell(HasExpired, i, was)
	default: // delayed
		i.notBefore = 0
		q.move(i, Ready)
		q.tell(BecameReady, i, was)
	}
}

// raise requeues or drops dead letters: one, or all.
func (q *queue) raise(c Command) Result {
	if c.Number == 0 && c.ID == "" {
		n := uint64(0)
		for w, ok := q.dead.Min(); ok; w, ok = q.dead.Min() {
			q.raiseOne(c.Op, q.items[NumberOf(w)])
			n++
		}
		return Result{N: n}
	}
	i, r := q.find(c)
	if i == nil {
		return r
	}
	if i.state != Dead {
		return Result{Code: NotReady, Number: i.number, State: i.state}
	}
	q.raiseOne(c.Op, i)
	return Result{N: 1, Number: i.number, State: i.state}
}

func (q *queue) raiseOne(op Op, i *item) {
	was := i.before()
	if op == OpBury {
		q.finish(i)
		q.counters.Cancelled++
		q.tell(WasCancelled, i, was)
		return
	}
	i.attempts = 0
	q.move(i, i.stands())
	q.tell(WasRequeued, i, was)
}
