package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/notify"
	peerv1 "github.com/anteroom/anteroom/proto/anteroom/peer/v1"
)

// conditionsOnDisk is the name of the file in node.data.
const conditionsOnDisk = "conditions.json"

// lookEvery is how often a node looks at the conditions of notifications.
const lookEvery = time.Second

// newsMax bounds what another node says of a condition, in bytes.
const newsMax = 16 << 10

// conditions has operators notified of what follows from figures: that people wait,
// that a node is lost. What is about the cluster, the node that runs the waves
// tells; what is about one node, that one does. All others hear of it, and have the
// notification to send as well.
type conditions struct {
	s     *Server
	all   *notify.Conditions
	certs certificates

	// Of the goroutine that runs.
	members []string // that have heard what was told so far
	saved   []notify.Told
}

func (s *Server) buildConditions() error {
	var kept []notify.Told
	if s.store != nil {
		text, err := os.ReadFile(s.store.Path(conditionsOnDisk))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			if err := json.Unmarshal(text, &kept); err != nil {
				s.log.Warn("what was told of the rooms cannot be read, and may be told again", "file", s.store.Path(conditionsOnDisk), "err", err)
				kept = nil
			}
		}
	}
	s.told = &conditions{s: s, all: notify.NewConditions(kept), saved: kept, certs: certificatesOf(&s.c.Security)}
	return nil
}

// run looks at the conditions until ctx ends.
func (c *conditions) run(ctx context.Context) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			c.save()
			return
		case now := <-every.C:
			c.look(now)
			c.repeat()
			c.save()
		}
	}
}

func (c *conditions) look(now time.Time) {
	if len(c.s.c.Notifications) == 0 || c.s.leaving.Load() {
		return
	}
	v := c.view(now)
	for _, n := range c.all.Look(now, v.readings()) {
		if n.Event != nil {
			c.s.sender.Add(*n.Event, now)
		}
		c.say(n)
	}
}

func (c *conditions) view(now time.Time) *conditionsView {
	snapshot := c.s.loop.Snapshot()
	return &conditionsView{
		Snapshot: snapshot, now: now, at: time.UnixMicro(c.s.loop.PassTime()), self: string(c.s.self.Name),
		t: c.s.c.NotificationThresholds, expiring: c.certs.expiring(now, time.Duration(c.s.c.NotificationThresholds.Certificate)),
	}
}

// say tells the other nodes.
func (c *conditions) say(n notify.News) {
	text, err := json.Marshal(n)
	if err != nil {
		c.s.log.Error("what has happened cannot be told", "condition", n.Told.Key, "err", err)
		return
	}
	key := "told/" + n.Told.Key // what is only repeated must not take the place of an event on its way
	if n.Event != nil {
		key = "event/" + n.Told.ID
	}
	c.s.notices.Tell(key, &peerv1.Notice{Kind: &peerv1.Notice_Happening{Happening: &peerv1.Happening{Event: text}}})
}

// hear takes in what another node has told.
func (c *conditions) hear(text []byte, now time.Time) {
	var n notify.News
	if len(text) > newsMax || json.Unmarshal(text, &n) != nil || n.Told.Key == "" {
		return
	}
	c.all.Hear(n.Told)
	if n.Event != nil { // even if that was known: it may have been repeated before it came
		c.s.sender.Add(*n.Event, now)
	}
}

// repeat says again what was told, where there are members that may not have heard
// it: they need not send it, but one of them may have to go on from here.
func (c *conditions) repeat() {
	var names []string
	news := false
	for _, m := range c.s.members.Members() {
		names = append(names, m.String())
		news = news || !slices.Contains(c.members, m.String())
	}
	if c.members = names; !news {
		return
	}
	for _, t := range c.all.Told() {
		c.say(notify.News{Told: t})
	}
}

// save keeps what was told, so that a restart neither tells it again nor forgets
// that its end is to be told.
func (c *conditions) save() {
	told := c.all.Told()
	if c.s.store == nil || slices.Equal(told, c.saved) {
		return
	}
	c.saved = told
	text, _ := json.Marshal(told) // strings and times
	if err := c.s.store.Write(conditionsOnDisk, text); err != nil {
		c.s.log.Error("what was told of the rooms is not on disk", "err", err)
	}
}
