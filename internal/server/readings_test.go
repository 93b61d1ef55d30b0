package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/config"
	"github.com/anteroom/anteroom/internal/loop"
	"github.com/anteroom/anteroom/internal/node"
	"github.com/anteroom/anteroom/internal/notify"
	"github.com/anteroom/anteroom/qpid"
)

// viewOf is a quiet cluster of a and b with a room for ten, seen by a, which leads.
func viewOf() *conditionsView {
	now := time.Unix(100_000, 0)
	a, b := eviction.Member{Name: "a", Boot: 1}, eviction.Member{Name: "b", Boot: 1}
	return &conditionsView{
		now: now, at: now, self: "a", t: config.DefaultNotificationThresholds(),
		Snapshot: &loop.Snapshot{
			Status: node.Status{
				Self: a, Leading: true, Grade: eviction.Unanimous, Installed: qpid.Epoch{Num: 5},
				Voters: eviction.Voters{Names: []qpid.NodeID{"a", "b"}}, List: []eviction.Member{a, b},
			},
			Rooms: []node.RoomStatus{{
				Room: eviction.Room{Name: "shop", Target: 10}, Now: eviction.Room{Name: "shop", Target: 10}, Account: eviction.Account{Born: 1},
			}},
		},
	}
}

// on are the events that would begin now.
func (v *conditionsView) on() string {
	var types []string
	for _, r := range v.readings() {
		if r.State == notify.On && r.Mine {
			types = append(types, r.Begins.Type)
		}
	}
	return strings.Join(types, " ")
}

func TestWhatIsWorthANotification(t *testing.T) {
	before := func(d time.Duration) int64 { return time.Unix(100_000, 0).Add(-d).UnixMicro() }
	for name, c := range map[string]struct {
		change func(v *conditionsView, r *node.RoomStatus)
		want   string
	}{
		"a quiet room":                {func(*conditionsView, *node.RoomStatus) {}, ""},
		"a queue":                     {func(_ *conditionsView, r *node.RoomStatus) { r.Total = 1 }, "queueing.began"},
		"a full room":                 {func(_ *conditionsView, r *node.RoomStatus) { r.Active = 10 }, "limit.reached"},
		"one that is nearly full":     {func(_ *conditionsView, r *node.RoomStatus) { r.Active = 9 }, ""},
		"one that is closed":          {func(_ *conditionsView, r *node.RoomStatus) { r.Now.Target = 0 }, ""},
		"a long wait":                 {func(_ *conditionsView, r *node.RoomStatus) { r.Wait.P50 = 31 * time.Minute }, "wait.above"},
		"a wait that is still long":   {func(_ *conditionsView, r *node.RoomStatus) { r.Wait.P50 = 25 * time.Minute }, ""},
		"waits that are not told":     {func(v *conditionsView, r *node.RoomStatus) { v.t.Wait, r.Wait.P50 = 0, time.Hour }, ""},
		"slots that are missing":      {func(_ *conditionsView, r *node.RoomStatus) { r.Missing = 2 }, "slots.missing"},
		"a deleted room":              {func(_ *conditionsView, r *node.RoomStatus) { r.Total, r.Room.Mode = 1, eviction.Deleted }, ""},
		"a room that nobody has told": {func(_ *conditionsView, r *node.RoomStatus) { r.Total, r.Account.Born = 1, 0 }, ""},
		"a lost node":                 {func(v *conditionsView, _ *node.RoomStatus) { v.Status.List = v.Status.List[:1] }, "node.lost"},
		"a side without a majority": {func(v *conditionsView, r *node.RoomStatus) {
			v.Status.List, v.Status.Grade, r.Total = v.Status.List[:1], eviction.Side, 5
		}, "majority.lost"},
		"another node that leads": {func(v *conditionsView, r *node.RoomStatus) { v.Status.Leading, r.Total = false, 5 }, ""},
		"a clock that is off":     {func(v *conditionsView, _ *node.RoomStatus) { v.Status.Quarantined, v.Status.Leading = true, false }, "clock.off"},
		"people who gather": {func(_ *conditionsView, r *node.RoomStatus) {
			r.Room.Events = []eviction.Event{{Name: "sale", Prequeue: before(time.Second), Start: before(-time.Hour)}}
		}, "event.prequeue"},
		"an event that starts": {func(_ *conditionsView, r *node.RoomStatus) {
			r.Room.Events = []eviction.Event{{Name: "sale", Prequeue: before(time.Hour), Start: before(time.Second)}}
		}, "event.started"},
		"an event of long ago": {func(_ *conditionsView, r *node.RoomStatus) {
			r.Room.Events = []eviction.Event{{Name: "sale", Prequeue: before(2 * time.Hour), Start: before(time.Hour)}}
		}, ""},
		"a certificate that runs out": {func(v *conditionsView, _ *node.RoomStatus) {
			v.expiring = []expiring{{id: "1", key: "security.tls.gateway"}}
		}, "certificate.expiring"},
	} {
		v := viewOf()
		c.change(v, &v.Rooms[0])
		if got := v.on(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhatASideSawIsNotTakenForLong: a node that was cut off for long, and runs the
// waves again while another is not back yet, has not seen that one away for long.
func TestWhatASideSawIsNotTakenForLong(t *testing.T) {
	v := viewOf()
	all := notify.NewConditions(nil)
	look := func() (types []string) {
		for _, n := range all.Look(v.now, v.readings()) {
			types = append(types, n.Event.Type)
		}
		v.now = v.now.Add(time.Minute)
		return types
	}
	look()
	v.Status.List, v.Status.Grade, v.Rooms[0].Total = v.Status.List[:1], eviction.Side, 5
	look()
	if got := look(); !slices.Equal(got, []string{notify.MajorityLost}) {
		t.Errorf("a side without a quorum tells %v", got)
	}
	v.Status.Grade = eviction.Primary
	if got := look(); len(got) > 0 {
		t.Errorf("in a primary again, and without b yet, it tells %v at once", got)
	}
	v.Status.Grade, v.Rooms[0].Total = eviction.Unanimous, 0
	v.Status.List = []eviction.Member{v.Status.Self, {Name: "b", Boot: 1}}
	if got := look(); !slices.Equal(got, []string{notify.MajorityBack}) {
		t.Errorf("together again it tells %v", got)
	}
	v.Status.List, v.Rooms[0].Total = v.Status.List[:1], 5
	look()
	if got := look(); !slices.Equal(got, []string{notify.NodeLost, notify.QueueingBegan}) {
		t.Errorf("of what has lasted for long it tells %v", got)
	}
}

// TestACertificateThatRunsOutIsOneAtAllNodes: they have it in files of their own.
func TestACertificateThatRunsOutIsOneAtAllNodes(t *testing.T) {
	now := time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now.Add(10 * 24 * time.Hour)}, &x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	found := func() []expiring {
		path := filepath.Join(t.TempDir(), "cert.pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		s := config.Security{}
		s.TLS.Gateway.Cert, s.TLS.GRPC.Cert = config.Path(path), "nowhere.pem"
		c := certificatesOf(&s)
		if soon := c.expiring(now, 9*24*time.Hour); len(soon) > 0 {
			t.Errorf("good for ten days, and told at nine: %+v", soon)
		}
		return c.expiring(now, 14*24*time.Hour)
	}
	a, b := found(), found()
	if len(a) != 1 || len(b) != 1 || a[0] != b[0] || a[0].key != "security.tls.gateway" {
		t.Errorf("%+v and %+v", a, b)
	}
}
