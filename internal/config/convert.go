package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/anteroom/anteroom/eviction"
)

// What follows is for a configuration without errors.

// Eviction is what the core has to know of the cluster.
func (c Config) Eviction() eviction.Config {
	return eviction.Config{
		Period:       c.Cluster.Period.value(),
		Lease:        c.Cluster.Lease.value(),
		MaxSkew:      c.Cluster.MaxSkew.value(),
		ExcludeAfter: c.Cluster.ExcludeAfter.value(),
		Copies:       c.Cluster.Copies,
	}
}

// AdoptsCluster reports whether the node takes over the settings of the cluster
// that it joins: it is told of one, and of none of its settings.
func (f *File) AdoptsCluster() bool {
	for key := range f.places {
		if strings.HasPrefix(key, "cluster.") {
			return false
		}
	}
	return len(f.Config.Node.Join) > 0
}

// Proxies is TrustedProxies as ranges.
func (c Config) Proxies() []netip.Prefix {
	var ranges []netip.Prefix
	for _, text := range c.TrustedProxies {
		if p, err := parsePrefix(text); err == nil {
			ranges = append(ranges, p)
		}
	}
	return ranges
}

// AdminNames are the names that the admin port goes by, in lower case: those of
// AdminHosts, and that of node.admin itself.
func (c Config) AdminNames() []string {
	names := append(slices.Clone(c.AdminHosts), hostOf(c.Node.Admin))
	for i, name := range names {
		names[i] = strings.TrimSuffix(strings.ToLower(name), ".")
	}
	return names
}

func (d Duration) value() time.Duration { return time.Duration(d) }
func (p Patience) value() time.Duration { return time.Duration(p) }

// String is the configuration as a file, with every key and no secret.
func (c Config) String() string {
	text, err := yaml.MarshalWithOptions(c, yaml.IndentSequence(true))
	if err != nil {
		panic("config: " + err.Error()) // plain values only
	}
	return string(text)
}

// KeysKept is how long a signing key opens what it sealed after a newer one has
// taken over: the longest that a place or a pass can live.
func (c Config) KeysKept() time.Duration {
	place, session := 24*time.Hour, time.Duration(0)
	for _, r := range c.Rooms {
		place = max(place, r.TicketTTL.value())
		session = max(session, r.SessionDuration.value())
		for _, e := range r.Events {
			session = max(session, e.SessionDuration.value())
		}
	}
	return place + session
}
