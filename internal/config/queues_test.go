package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/internal/config"
)

func TestQueuesThatCannotBe(t *testing.T) {
	text := `
queueing: {queues_max: 0, memory_max: 5}
queues:
  - durable: true
  - name: "a b"
    replicas: 9
    lease: 1h
    lease_max: 1m
  - name: mail/out
    interval: 1us
    per_interval: 0
    max_in_flight: -1
    max_payload: 300000
    max_attempts: -1
  - name: mail/out
    replicas: 2
    weight: 3
  - name: slow
    backoff: {base: 1us, factor: 0, max: 0s}
  - name: late
    backoff: {base: 10m}
    dead_letter_queue: nowhere
  - name: a
    dead_letter_queue: b
  - name: b
    dead_letter_queue: c
  - name: c
    dead_letter_queue: a
  - name: d
    dead_letter_queue: e
  - name: e
    dead_letter_queue: e
  - name: f
    durable: true
    dead_letter_queue: c
`
	f := config.Parse("q.yaml", []byte(text), config.Options{Host: "h"})
	var got []string
	for _, p := range f.Errors {
		got = append(got, p.Error())
	}
	want := []string{
		"q.yaml:2: queueing.queues_max: 0; give a number from 1 to 100000",
		"q.yaml:2: queueing.memory_max: 5 bytes; give at least 1048576",
		"q.yaml:4: queues[0].name: missing; give the queue a name, such as jobs or mail/outgoing",
		"q.yaml:4: queues[0].durable: needs a disk; set node.data",
		`q.yaml:5: queues[1].name: "a b" is no name; give name or namespace/name, each of up to 63 letters, digits, dots, - and _`,
		"q.yaml:6: queues[1].replicas: 9; give a number from 1 to 7",
		"q.yaml:7: queues[1].lease: 1h is more than lease_max, 1m; give less, or raise that",
		"q.yaml:10: queues[2].interval: 1µs; give at least 1ms, or 0 for none",
		"q.yaml:11: queues[2].per_interval: 0; give a number from 1 to 1000",
		"q.yaml:12: queues[2].max_in_flight: -1; give a number from 0 to 100000000",
		"q.yaml:13: queues[2].max_payload: 300000; give a number from 0 to 196608",
		"q.yaml:14: queues[2].max_attempts: -1; give a number from 0 to 1000000",
		`q.yaml:15: queues[3].name: "mail/out" is the name of queues[2] too; give each queue its own`,
		"q.yaml:16: queues[3].replicas: needs a disk; set node.data",
		"q.yaml:17: queues[3].weight: unknown key; there are name, durable, replicas, max_items, max_payload, lease, lease_max, max_attempts, dead_letters_max, dead_letter_queue, remember, remember_max, interval, per_interval, max_in_flight, exclusive_keys, fair_keys, backoff",
		"q.yaml:19: queues[4].backoff.factor: 0; give a number from 1 to 100",
		"q.yaml:19: queues[4].backoff.max: 0s; give a time from 1ms to 8760h",
		"q.yaml:19: queues[4].backoff.base: 1µs; give at least 1ms, or 0 for none",
		"q.yaml:21: queues[5].backoff.base: 10m is more than backoff.max, 5m; give less, or raise that",
		`q.yaml:22: queues[5].dead_letter_queue: "nowhere" is not listed; list it under queues`,
		`q.yaml:24: queues[6].dead_letter_queue: "b" leads back to this queue; the last of them needs to have none`,
		`q.yaml:26: queues[7].dead_letter_queue: "c" leads back to this queue; the last of them needs to have none`,
		`q.yaml:28: queues[8].dead_letter_queue: "a" leads back to this queue; the last of them needs to have none`,
		`q.yaml:32: queues[10].dead_letter_queue: "e" leads back to this queue; the last of them needs to have none`,
		"q.yaml:34: queues[11].durable: needs a disk; set node.data",
		`q.yaml:35: queues[11].dead_letter_queue: "c" is in memory, and this queue is durable; make both the same`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLogsThatQueuesNeed(t *testing.T) {
	for _, c := range []struct {
		text     string
		durable  bool
		replicas int
	}{
		{"", false, 0},
		{"queues: [{name: a, durable: true}]", true, 0},
		{"queues: [{name: a, replicas: 3, durable: true}, {name: b, replicas: 2}]", false, 3},
		{"queues: [{name: a, replicas: 2}, {name: b, durable: true}, {name: c}]", true, 2},
	} {
		f := config.Parse("q.yaml", []byte("node: {data: /tmp}\n"+c.text), config.Options{Host: "h"})
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		if d, r := f.Config.Logged(); d != c.durable || r != c.replicas {
			t.Errorf("%q: durable %v, replicas %d", c.text, d, r)
		}
	}
}

func TestQueuesOfTwoFilesAreTheSame(t *testing.T) {
	a := config.Default("a")
	b := config.Default("b")
	b.Queues = []config.Queue{config.DefaultQueue()}
	b.Queueing.QueuesMax = 7
	if diff := cmp.Diff([]string{"node.id", "queueing.queues_max", "queues"}, config.Differences(a, b)); diff != "" {
		t.Error(diff)
	}
}
