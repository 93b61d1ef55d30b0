package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Together checks the files of one cluster against each other, and adds what it
// finds to them.
func Together(files []*File) {
	if len(files) < 2 {
		return
	}
	ids := map[string]*File{}
	var leads *File // the first that gives settings of the cluster, or whose defaults count
	for i, f := range files {
		id := f.Config.Node.ID
		if other := ids[id]; other != nil && f.given("node.id") {
			f.fault("node.id", "%q is that of %s too; give each node its own", id, other.Name)
		}
		ids[id] = f
		if len(f.Config.Node.Join) == 0 {
			f.warn("node.join", "empty: this node starts a cluster of one whenever it starts, and the others find it only later; list some of them")
		}
		if i > 0 {
			f.compare(files[0])
		}
		switch {
		case f.AdoptsCluster():
		case leads == nil:
			leads = f
		default:
			f.compareCluster(leads)
		}
		f.sort()
	}
}

// compare notes where f differs from another node's file and must not.
func (f *File) compare(o *File) {
	for _, key := range Differences(o.Config, f.Config) {
		switch {
		case key == "node.expect" && f.Config.Node.Expect > 0 && o.Config.Node.Expect > 0:
			f.fault(key, "not as in %s; give the same on all nodes", o.Name)
		case key == "prefix" || key == "trusted_proxies" || key == "country_header":
			f.warn(key, "not as in %s; visitors may come to either node", o.Name)
		}
	}
	if (f.Config.Security.TLS.Peer == MutualTLS{}) != (o.Config.Security.TLS.Peer == MutualTLS{}) {
		f.fault("security.tls.peer", "given here or in %s, but not in both; give it on all nodes", o.Name)
	}
	f.compareGossipKeys(o)
	f.compareRooms(o)
}

// compareGossipKeys sees that the two nodes would know each other: each opens
// what the other seals. While a key is exchanged their lists may differ.
func (f *File) compareGossipKeys(o *File) {
	ours, theirs := f.Config.Security.GossipKey, o.Config.Security.GossipKey
	switch {
	case len(ours) == 0 && len(theirs) == 0:
	case len(ours) == 0 || len(theirs) == 0, !slices.ContainsFunc(ours, theirs[0].Equal) || !slices.ContainsFunc(theirs, ours[0].Equal):
		f.fault(f.gossipKeyPlace(), "not as in %s; give the same on all nodes", o.Name)
	case !slices.EqualFunc(ours, theirs, Secret.Equal):
		f.warn(f.gossipKeyPlace(), "not the same keys as in %s; fine while a key is exchanged for another", o.Name)
	}
}

func (f *File) gossipKeyPlace() string {
	if f.Config.Security.GossipKeyFile != "" {
		return "security.gossip_key_file"
	}
	return "security.gossip_key"
}

// compareCluster notes where settings differ on which all nodes must agree.
func (f *File) compareCluster(o *File) {
	alike := f.Config.Eviction().Fresh() == o.Config.Eviction().Fresh()
	for _, key := range Differences(o.Config, f.Config) {
		if key == "cluster.period" && alike {
			continue // nobody reckons with it
		}
		if strings.HasPrefix(key, "cluster.") || strings.HasPrefix(key, "queue") {
			f.fault(key, "not as in %s; give the same on all nodes", o.Name)
		}
	}
}

// compareRooms warns of rooms that differ. It is no error: one of the files may
// be on its way to the other nodes.
func (f *File) compareRooms(o *File) {
	theirs := map[string]Room{}
	for _, r := range o.Config.Rooms {
		theirs[r.Name] = r
	}
	for i, r := range f.Config.Rooms {
		key := "rooms" + index(i)
		their, ok := theirs[r.Name]
		delete(theirs, r.Name)
		if !ok {
			f.warn(key, "%s does not have the room %q; list the same rooms on all nodes", o.Name, r.Name)
			continue
		}
		ours := fieldsOf(reflect.ValueOf(&r).Elem())
		others := fieldsOf(reflect.ValueOf(&their).Elem())
		for _, name := range tags(reflect.TypeFor[Room]()) {
			if !reflect.DeepEqual(ours[name].Interface(), others[name].Interface()) {
				f.warn(join(key, name), "not as in %s; give the same on all nodes", o.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		f.warn("rooms", "the room %q of %s is not here; list the same rooms on all nodes", name, o.Name)
	}
}
