package live

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

var rolls = flag.Bool("rolls", false, "roll the StatefulSet of deploy/kubernetes under a crowd, which takes a minute and a half")

// The StatefulSet of deploy/kubernetes is rolled under a crowd as Kubernetes does it:
// the highest pod first; each serves on while balancers hear that it goes, is told, and
// comes back; and the next goes when that one has been ready for a while. A pod has the
// arguments, the variables and the configuration of the manifests, and what flags say:
// the ports and directories of a machine that is all pods'. Meanwhile the ConfigMap is
// changed. The limit holds, the order holds, and all nodes have the change.
func TestARollOfTheStatefulSet(t *testing.T) {
	if !*rolls {
		t.Skip("NOT RUN: it takes a minute and a half; .ci/run long runs it, by -rolls")
	}
	c := newCluster(t, 20)
	c.session, c.lease, c.refresh = 15*time.Second, 10*time.Second, 20*time.Second
	k := newKubernetes(c)
	c.phase("start %d pods side by side", k.set.Replicas)
	for _, p := range k.pods {
		k.start(p)
	}
	k.ready(k.pods...)
	crowd, done := c.crowd(450, 8*time.Second, 2*time.Second, 7)
	c.until("a line", 20*time.Second, func() bool { return crowd.Counts().Waiting > 40 })
	metronome, began := c.metronome(), time.Now()
	for i, p := range slices.Backward(k.pods) {
		k.stop(p)
		if i == len(k.pods)-1 { // of a pod that is not there nobody can tell it
			k.configure(100_000)
		}
		k.start(p)
		k.ready(p)
	}
	n := crowd.Counts()
	c.phase("all pods have been replaced; %d people wait, %d were in", n.Waiting, n.Done)
	if n.Waiting == 0 {
		t.Error("nobody waits any more: the last pods were replaced without a crowd")
	}
	err, ended := <-done, time.Now()
	tau, had := 0.0, float64(metronome.between(began.UnixMicro(), ended.UnixMicro()))/float64(ended.Sub(began).Microseconds()*1000)
	if had < awake {
		c.phase("the machine had %.0f %% of its time for us, so the order says nothing", 100*had)
		tau = 1
	}
	c.fair(crowd, err, tau)
	c.until("the room as the ConfigMap has it", 10*time.Second, func() bool {
		return !slices.ContainsFunc(k.pods, func(p *process) bool { return p.room().NewUsersPerMinute != 100_000 })
	})
}

// kubernetes does with processes what a StatefulSet's controller and a kubelet do.
type kubernetes struct {
	c      *cluster
	set    statefulSet
	config map[string]any // anteroom.yaml of the ConfigMap
	pods   []*process     // by their ordinals
	shots  int            // how often a volume was swapped
}

// statefulSet is what of one matters here.
type statefulSet struct {
	Replicas        int
	MinReadySeconds int `yaml:"minReadySeconds"`
	Template        struct {
		Spec struct {
			Grace      int `yaml:"terminationGracePeriodSeconds"`
			Containers []container
		}
	}
}

type container struct {
	Args []string
	Env  []struct {
		Name, Value string
		ValueFrom   struct {
			Field struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
			Secret struct{ Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	Readiness struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
		Period  int                   `yaml:"periodSeconds"`
		Timeout int                   `yaml:"timeoutSeconds"`
	} `yaml:"readinessProbe"`
	Lifecycle struct {
		PreStop struct {
			Sleep struct{ Seconds int }
		} `yaml:"preStop"`
	}
}

func newKubernetes(c *cluster) *kubernetes {
	c.t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/anteroom.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	k := &kubernetes{c: c}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var o struct {
			Kind string
			Spec statefulSet
			Data map[string]string
		}
		if kind := (struct{ Kind string }{}); yaml.Unmarshal([]byte(part), &kind) != nil || kind.Kind != "StatefulSet" && kind.Kind != "ConfigMap" {
			continue
		}
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			c.t.Fatal(err)
		}
		if o.Kind == "StatefulSet" {
			k.set = o.Spec
		} else if err := yaml.Unmarshal([]byte(o.Data["anteroom.yaml"]), &k.config); err != nil {
			c.t.Fatal(err)
		}
	}
	if k.set.Replicas < 3 || k.config == nil {
		c.t.Fatalf("deploy/kubernetes has %+v and %v", k.set, k.config)
	}
	if err := os.WriteFile(c.file("cluster.key"), []byte(c.secret+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.secret, c.operator = "", "0123456789abcdef0123456789abcdef"
	for range k.set.Replicas {
		k.pods = append(k.pods, c.add())
	}
	k.configure(0)
	return k
}

// configure has the kubelets swap the volumes of all pods for one with another room.
func (k *kubernetes) configure(newUsersPerMinute int) {
	k.c.t.Helper()
	k.config["rooms"] = []map[string]any{{
		"name": "shop", "routes": []map[string]string{{"host": "*", "path": "/"}}, "origin": k.c.origin.URL,
		"total_active_users": k.c.limit, "new_users_per_minute": newUsersPerMinute,
		"session_duration": k.c.session.String(), "refresh_interval": k.c.refresh.String(), "claim_window": k.c.claim.String(), "ticket_ttl": "1m",
	}}
	text, err := yaml.Marshal(k.config)
	if err != nil {
		k.c.t.Fatal(err)
	}
	k.shots++
	for _, p := range k.pods {
		volume := k.c.file(p.id + "-config")
		next := filepath.Join(volume, "..version"+strings.Repeat("+", k.shots))
		if err := os.MkdirAll(next, 0o700); err != nil {
			k.c.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(next, "anteroom.yaml"), text, 0o600); err != nil {
			k.c.t.Fatal(err)
		}
		k.link(next, filepath.Join(volume, "..data"))
		k.link(filepath.Join("..data", "anteroom.yaml"), filepath.Join(volume, "anteroom.yaml"))
	}
	k.c.phase("the ConfigMap has new_users_per_minute: %d", newUsersPerMinute)
}

// link makes a link, or turns one to something else at once.
func (k *kubernetes) link(to, name string) {
	k.c.t.Helper()
	if err := os.Symlink(to, name+"_tmp"); err != nil {
		k.c.t.Fatal(err)
	}
	if err := os.Rename(name+"_tmp", name); err != nil {
		k.c.t.Fatal(err)
	}
}

func (k *kubernetes) container() container { return k.set.Template.Spec.Containers[0] }

// start starts a pod's container as it is in the manifests, serve first.
func (k *kubernetes) start(p *process) {
	k.c.t.Helper()
	var args []string
	for _, a := range k.container().Args[1:] {
		args = append(args, strings.Replace(a, "/etc/anteroom", k.c.file(p.id+"-config"), 1))
	}
	k.c.env = nil
	for _, e := range k.container().Env {
		value := e.Value
		switch {
		case e.ValueFrom.Field.FieldPath == "metadata.name":
			value = p.id
		case e.ValueFrom.Field.FieldPath == "status.podIP":
			value = "127.0.0.1"
		case e.ValueFrom.Secret.Key == "admin-token":
			value = k.c.operator
		}
		k.c.env = append(k.c.env, e.Name+"="+value)
	}
	p.run(append(args, "--gateway", p.at(0), "--admin", p.at(1), "--peer", p.at(2), "--gossip", p.gossip(), "--grpc", p.grpc(),
		"--join", seeds(k.pods), // to all of which the name of the headless Service resolves
		"--gossip-key-file", k.c.file("cluster.key"), "--data", k.c.file(p.id+"-data"), "--admissions", k.c.file(p.id+".jsonl"))...)
}

// ready waits until pods are available: their probes have said for long enough that they are ready.
func (k *kubernetes) ready(pods ...*process) {
	k.c.t.Helper()
	often := time.NewTicker(time.Duration(k.container().Readiness.Period) * time.Second)
	defer often.Stop()
	began := time.Now()
	for since := began; time.Since(since) < time.Duration(k.set.MinReadySeconds)*time.Second; <-often.C {
		if slices.ContainsFunc(pods, func(p *process) bool { return !k.probe(p) }) {
			since = time.Now()
		}
		if time.Since(began) > time.Minute {
			k.c.t.Fatalf("not ready after %v", time.Since(began))
		}
	}
	for _, p := range pods {
		k.c.phase("%s is ready", p.id)
	}
}

// probe asks a pod whether it is ready.
func (k *kubernetes) probe(p *process) bool {
	probe := k.container().Readiness
	a, err := p.look(probe.HTTPGet.Path, time.Duration(probe.Timeout)*time.Second)
	if err != nil {
		return false
	}
	_ = a.Body.Close()
	return a.StatusCode == http.StatusOK
}

// stop ends a pod, which is killed where that takes longer than its grace.
func (k *kubernetes) stop(p *process) {
	k.c.t.Helper()
	sleep := time.Duration(k.container().Lifecycle.PreStop.Sleep.Seconds) * time.Second
	<-time.After(sleep)
	p.signal(syscall.SIGTERM)
	took := k.c.await("end of "+p.id, time.Duration(k.set.Template.Spec.Grace)*time.Second-sleep, func() bool { return !p.running() })
	k.c.phase("%s went on for %v, and then left in %.1f s", p.id, sleep, took.Seconds())
}
