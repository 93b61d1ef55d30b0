package qpid

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestDialogues plays the files in testdata. Nodes are a, b, c…; an item is
// called by its stamp. Every message sent is printed indented below what caused
// it. Commands:
//
//	network a-b b-c           nodes and links; nothing is installed yet
//	items a:10 b:20…          inserts them, before the first wave
//	insert NODE STAMP…
//	remove NODE STAMP
//	deleteMin NODE
//	repeat                    the last deleteMin again, under the same number
//	wave                      plays a wave from start to end
//	start                     begins a wave, for
//	reply NODE…               and
//	install NODE…
//	deliver [FROM TO]         all messages, or the first of one link
//	lose FROM TO              the first message of a link
//	stale FROM TO STAMP SEQ   delivers an update with this sequence number
//	state
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		d := &dialogue{}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			var args []string
			for _, a := range td.CmdArgs {
				args = append(args, a.Key)
			}
			if err := d.run(td.Cmd, args); err != nil {
				td.Fatalf(t, "%v", err)
			}
			out := d.trace.String()
			d.trace.Reset()
			if out == "" {
				return "nothing is sent"
			}
			return out
		})
	})
}

type dialogue struct {
	*network
	last OpID
}

func (d *dialogue) run(cmd string, args []string) error {
	switch cmd {
	case "network":
		return d.open(args)
	case "items":
		return d.fill(args)
	}
	var nodes []int // as far as arguments are names
	var numbers []uint64
	for _, a := range args {
		if i := d.index(NodeID(a)); i >= 0 {
			nodes = append(nodes, i)
		} else if n, err := strconv.ParseUint(a, 10, 64); err == nil {
			numbers = append(numbers, n)
		} else {
			return fmt.Errorf("%q is neither a node nor a number", a)
		}
	}
	switch cmd {
	case "insert":
		for _, s := range numbers {
			d.insert(nodes[0], s)
		}
	case "remove":
		if !d.remove(nodes[0], numbers[0]) {
			return fmt.Errorf("%d is not there", numbers[0])
		}
	case "deleteMin":
		d.last = d.deleteMin(nodes[0])
	case "repeat":
		v := d.index(d.last.Caller)
		d.nodes[v].DeleteMin(d.last)
		d.collect(v)
	case "wave":
		d.wave()
		d.state()
	case "start":
		d.startWave()
		fmt.Fprintf(&d.trace, "epoch %d\n", d.epoch.Num)
	case "reply":
		for _, v := range nodes {
			d.reply(v)
			fmt.Fprintf(&d.trace, "%s: %s\n", d.ids[v], showWeight(d.weights[v]))
		}
	case "install":
		for _, v := range nodes {
			if err := d.install(v); err != nil {
				fmt.Fprintf(&d.trace, "  %s: error: %s\n", d.ids[v], errorLine(err))
			}
		}
	case "deliver":
		d.deliverAll(nodes)
	case "lose":
		link := [2]int{nodes[0], nodes[1]}
		fmt.Fprintf(&d.trace, "lost: %s\n", show(d.links[link][0]))
		d.links[link] = d.links[link][1:]
	case "stale":
		return d.stale(nodes[0], nodes[1], numbers[0], numbers[1])
	case "state":
		d.state()
	default:
		return fmt.Errorf("unknown command %q", cmd)
	}
	return nil
}

func (d *dialogue) open(links []string) error {
	var edges [][2]int
	n := 1
	for _, l := range links {
		if len(l) != 3 || l[1] != '-' {
			return fmt.Errorf("%q is no link", l)
		}
		e := [2]int{int(l[0] - 'a'), int(l[2] - 'a')}
		edges = append(edges, e)
		n = max(n, e[0]+1, e[1]+1)
	}
	d.network = newNetwork(newTopology(n, edges...))
	fmt.Fprintf(&d.trace, "%d nodes\n", n)
	return nil
}

func (d *dialogue) fill(items []string) error {
	for _, it := range items {
		node, stamp, _ := strings.Cut(it, ":")
		s, err := strconv.ParseUint(stamp, 10, 64)
		if v := d.index(NodeID(node)); err == nil && v >= 0 {
			d.insert(v, s)
			continue
		}
		return fmt.Errorf("%q is no item of a node", it)
	}
	fmt.Fprintf(&d.trace, "%d items\n", len(items))
	return nil
}

// deliverAll delivers the first message of a link, or all there are. Errors are
// part of the dialogue.
func (d *dialogue) deliverAll(link []int) {
	if len(link) == 2 {
		_ = d.deliver([2]int{link[0], link[1]})
		return
	}
	for links := d.busy(); len(links) > 0; links = d.busy() {
		_ = d.deliver(links[0])
	}
}

func (d *dialogue) stale(from, to int, stamp, seq uint64) error {
	m := Message{Kind: MsgUpdate, From: d.ids[from], To: d.ids[to], Epoch: d.epoch, Seq: seq, Weight: item(stamp, 0)}
	fmt.Fprintf(&d.trace, "%s, seq %d\n", show(m), seq)
	err := d.nodes[to].Step(m)
	d.collect(to)
	return err
}

func (d *dialogue) state() {
	for _, n := range d.nodes {
		role := "parent " + string(n.Parent())
		switch {
		case n.Frozen():
			role = "frozen"
		case n.IsRoot():
			role = "root"
		}
		var table []string
		for _, e := range n.Table() {
			table = append(table, fmt.Sprintf("%s:%s", e.ID, showWeight(e.Weight)))
		}
		fmt.Fprintf(&d.trace, "%s: %-8s epoch %d, table %s\n", n.self, role, n.Epoch().Num, strings.Join(table, " "))
	}
	for _, link := range d.busy() {
		for _, m := range d.links[link] {
			fmt.Fprintf(&d.trace, "on its way: %s\n", show(m))
		}
	}
}
