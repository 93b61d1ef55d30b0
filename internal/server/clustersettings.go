package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/store"
	"github.com/anteroom/anteroom/qpid"
)

// clusterSettings are the settings of a cluster, as one node's file has them. Nodes
// compare them before anything else is said on a link, and a node without any of its own
// takes over those of the first one that has some. They may differ in what the waves agree
// on by themselves (see eviction.Bounds), and in how often a node does things; in the
// rest they must not.
type clusterSettings struct {
	self qpid.NodeID
	disk *store.Store // where settings that were taken over are kept; nil: nowhere
	log  *slog.Logger
	wave func() bool                 // this node has installed one in this life
	take func(eviction.Config) error // makes settings those of the node
	then func()                      // what follows from that

	mu       sync.Mutex
	c        eviction.Config
	standing standing
	adopts   bool
	differ   map[eviction.Member]string // what was said last of others with settings that must not differ
	noted    map[qpid.NodeID]string     // the same of those with settings that may
}

// standing is what settings rest on. A node that adopts takes over those with a
// higher one than its own, so no two pass theirs back and forth, and what was
// taken from a stray node gives way to a cluster's.
type standing int

const (
	byDefault standing = iota // nobody gave any
	kept                      // an earlier life of this node had taken them over
	given                     // by the node's configuration, or taken over in this life
	inForce                   // the node is part of a cluster that runs with them
)

// statement is what a node says of its settings in a Hello.
type statement struct {
	Settings eviction.Config `json:"settings"`
	Standing standing        `json:"standing"`
	Adopts   bool            `json:"adopts,omitempty"` // takes over others
}

// settingsOnDisk is the name of the file in node.data.
const settingsOnDisk = "cluster.json"

// load finds out what the node starts with. One that adopts starts with what an
// earlier life had taken over: if it is back before those who gave them, it must
// not run a cluster on others.
func (cs *clusterSettings) load() error {
	if !cs.adopts || cs.disk == nil {
		return nil
	}
	file := cs.disk.Path(settingsOnDisk)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var c eviction.Config
	if err == nil {
		err = errors.Join(json.Unmarshal(b, &c), c.Validate())
	}
	if err != nil {
		return fmt.Errorf("%s, the cluster's settings, cannot be used: %w; remove the file, and give this node the `cluster:` settings of the others", file, err)
	}
	cs.c, cs.standing = c.WithDefaults(), kept
	return nil
}

// state is what the node says of its settings now. The caller holds cs.mu.
func (cs *clusterSettings) state() statement {
	s := statement{Settings: cs.c, Standing: min(cs.standing, given), Adopts: cs.adopts}
	if cs.wave() {
		s.Standing, s.Adopts = inForce, false
	}
	return s
}

// Settings are the node's, as a Hello carries them.
func (cs *clusterSettings) Settings() []byte {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	b, _ := json.Marshal(cs.state()) // numbers
	return b
}

// now returns the settings that the node runs with.
func (cs *clusterSettings) now() eviction.Config {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.c
}

// Agree compares the settings of another node, and takes them over where they
// count more than ours. The error is for both operators.
func (cs *clusterSettings) Agree(from eviction.Member, settings []byte) error {
	var theirs statement
	if len(settings) == 0 || json.Unmarshal(settings, &theirs) != nil {
		return cs.refuse(from, fmt.Sprintf("%s does not say which `cluster:` settings it has; run the same version on all nodes", from.Name))
	}
	theirs.Settings = theirs.Settings.WithDefaults()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	ours := cs.state()
	found, bad := cs.differences(from.Name, theirs.Settings)
	switch {
	case ours.Adopts && theirs.Standing > cs.standing && theirs.Settings != cs.c:
		return cs.adopt(from, theirs)
	case len(found) > 0 && theirs.Adopts && theirs.Standing < ours.Standing:
		return fmt.Errorf("%s has no `cluster:` settings of its own and first takes over those of %s", from.Name, cs.self)
	}
	cs.note(from.Name, found)
	if len(bad) == 0 {
		delete(cs.differ, from)
		return nil
	}
	text := strings.Join(bad, ", ") + "; give all nodes the same `cluster:` settings"
	if slices.ContainsFunc(bad, builtIn) {
		text += ", and run the same version on all"
	}
	return cs.refuseLocked(from, text)
}

// note tells the log, once while it is the same story, that a node which takes part has
// other settings, or has them no more.
func (cs *clusterSettings) note(other qpid.NodeID, found []string) {
	text := strings.Join(found, ", ")
	if cs.noted[other] == text {
		return
	}
	if cs.noted == nil {
		cs.noted = map[qpid.NodeID]string{}
	}
	if cs.noted[other] = text; text == "" {
		delete(cs.noted, other)
		cs.log.Info("a node has the same settings again", "peer", string(other))
		return
	}
	cs.log.Info("a node has other settings; each acts by its own as far as all reckon with them", "peer", string(other), "what", text)
}

func (cs *clusterSettings) refuse(from eviction.Member, text string) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.refuseLocked(from, text)
}

// refuseLocked tells the log, once while it is the same story.
func (cs *clusterSettings) refuseLocked(from eviction.Member, text string) error {
	if cs.differ[from] != text {
		cs.differ[from] = text
		cs.log.Warn("a node with other settings is left out", "peer", from.String(), "why", text)
	}
	return errors.New(text)
}

// adopt makes settings of another node ours. They are on disk first: a node that
// has acted by them must not forget them.
func (cs *clusterSettings) adopt(from eviction.Member, theirs statement) error {
	if err := cs.keep(theirs.Settings); err != nil {
		return cs.refuseLocked(from, fmt.Sprintf("%s cannot keep the `cluster:` settings of %s: %v", cs.self, from.Name, err))
	}
	if err := cs.take(theirs.Settings); err != nil {
		return errors.Join(cs.refuseLocked(from, fmt.Sprintf("%s cannot take over the `cluster:` settings of %s: %v", cs.self, from.Name, err)), cs.keep(cs.c))
	}
	cs.c, cs.standing = theirs.Settings, theirs.Standing
	clear(cs.differ)
	c := cs.c
	cs.log.Info("taking over the cluster's settings", "from", from.String(), "period", c.Period, "lease", c.Lease, "max_skew", c.MaxSkew, "exclude_after", c.ExcludeAfter, "copies", c.Copies)
	cs.then()
	return nil
}

// keep writes settings to disk, if there is one.
func (cs *clusterSettings) keep(c eviction.Config) error {
	if cs.disk == nil {
		return nil
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return cs.disk.Write(settingsOnDisk, b)
}

// differing says how another node's settings differ, empty if none does. Those
// of members that are gone are forgotten.
func (cs *clusterSettings) differing(there func(eviction.Member) bool) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var first eviction.Member
	for m := range cs.differ {
		if !there(m) {
			delete(cs.differ, m)
		} else if first == (eviction.Member{}) || m.Name < first.Name {
			first = m
		}
	}
	return cs.differ[first]
}

// paces reports whether a setting says only how often a node does things: how often
// waves come while it leads, and how soon it repeats what was lost. Nobody reckons with
// how often others do, beyond Fresh, so nodes may differ, and it can be changed one node
// at a time.
func paces(field string) bool { return field == "Period" || field == "Urgent" }

// agreedOn reports whether the waves see to it that nodes may differ in a setting.
func agreedOn(field string) bool {
	switch field {
	case "Lease", "Deadline", "MaxSkew", "Margin", "ExcludeAfter", "Copies":
		return true
	}
	return false
}

// differences lists the settings that differ, and of them those that must not, in words that
// are the same at both nodes: "cluster.lease is 5s at node-1 and 10s at node-4".
func (cs *clusterSettings) differences(other qpid.NodeID, theirs eviction.Config) (found, bad []string) {
	a, b, alike := reflect.ValueOf(cs.c), reflect.ValueOf(theirs), cs.c.Fresh() == theirs.Fresh()
	first, second := cs.self, other
	if second < first {
		a, b, first, second = b, a, second, first
	}
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if x == y || alike && paces(name) {
			continue
		}
		text := fmt.Sprintf("%s is %v at %s and %v at %s", keyOf(name), plainly(x), first, plainly(y), second)
		if found = append(found, text); !agreedOn(name) {
			bad = append(bad, text)
		}
	}
	return found, bad
}

// keyOf is how a configuration file would name a field: MaxSkew is
// cluster.max_skew.
func keyOf(field string) string {
	var b strings.Builder
	for i, r := range field {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return "cluster." + b.String()
}

// builtIn reports whether a difference is in what no configuration file has.
func builtIn(difference string) bool {
	key, _, _ := strings.Cut(difference, " ")
	return !slices.Contains(config.Keys(), key)
}

func plainly(v any) any {
	if d, ok := v.(time.Duration); ok {
		return config.Duration(d)
	}
	return v
}
