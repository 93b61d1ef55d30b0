package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// awsProgram is one in the manner of AWS' sample page: it takes a number, asks for
// the number being served alone until that has come up to its own, and then for a
// token.
type awsProgram struct {
	t       *testing.T
	c       *cluster
	at      int // of the nodes; the next one when this one does not answer
	home    *process
	id      string
	number  uint64
	served  time.Time // when it was told that its turn had come
	in      time.Time // when it had the token
	refused int       // tokens asked for in vain meanwhile
}

// ask sends one request of its API, to the node it knows or to another.
func (p *awsProgram) ask(method, path string, body map[string]string, into any) (status int) {
	b, _ := json.Marshal(body) // a map of strings
	client := http.Client{Timeout: 5 * time.Second}
	for ; p.t.Context().Err() == nil; p.at++ {
		q, err := http.NewRequest(method, p.node().gateway()+"/_anteroom"+path, bytes.NewReader(b))
		if err != nil {
			p.t.Error(err)
			return 0
		}
		q.Header.Set("Content-Type", "application/json")
		a, err := client.Do(q)
		if err != nil {
			continue // the load balancer has noticed
		}
		b, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil {
			continue
		}
		if a.StatusCode == http.StatusOK && into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				p.t.Errorf("%s: %v in %s", path, err, b)
			}
		}
		return a.StatusCode
	}
	return 0
}

func (p *awsProgram) node() *process { return p.c.nodes[p.at%len(p.c.nodes)] }

// join takes a number.
func (p *awsProgram) join() {
	var a struct {
		ID string `json:"api_request_id"`
	}
	var n struct {
		Number uint64 `json:"queue_number"`
	}
	p.home = p.node()
	if s := p.ask("POST", "/aws/assign_queue_num", map[string]string{"event_id": "shop"}, &a); s != http.StatusOK {
		p.t.Errorf("assign_queue_num: %d", s)
	}
	p.id = a.ID
	if s := p.ask("GET", "/aws/queue_num?event_id=shop&request_id="+p.id, nil, &n); s != http.StatusOK {
		p.t.Errorf("queue_num: %d", s)
	}
	p.number = n.Number
}

// run waits for its turn, is on the site for a while, and goes.
func (p *awsProgram) run(stay time.Duration) {
	every := time.NewTicker(500 * time.Millisecond) // as the sample does
	defer every.Stop()
	for p.served.IsZero() && p.t.Context().Err() == nil {
		<-every.C
		var a struct {
			N uint64 `json:"serving_counter"`
		}
		if p.ask("GET", "/aws/serving_num?event_id=shop", nil, &a); a.N >= p.number {
			p.served = time.Now()
		}
	}
	var in struct {
		Pass string `json:"refresh_token"`
	}
	for p.t.Context().Err() == nil {
		s := p.ask("POST", "/aws/generate_token", map[string]string{"event_id": "shop", "request_id": p.id}, &in)
		if s == http.StatusOK {
			break
		}
		if p.refused++; s != http.StatusAccepted {
			p.t.Errorf("generate_token of %d: %d", p.number, s)
			return
		}
		<-every.C
	}
	p.in = time.Now()
	<-time.After(stay)
	p.ask("POST", "/v1/rooms/shop/end", map[string]string{"pass": in.Pass}, nil)
}

// Twelve programs that were written for AWS wait among people with browsers, and a node
// is killed, where some of them have their number: all get in by the number, each with
// the first token that it asks for, and nobody is overtaken.
func TestProgramsForAWSKeepTheirTurnsWhenANodeIsKilled(t *testing.T) {
	t.Parallel()
	const programs = 12
	c := newCluster(t, 6)
	c.session, c.room = 6*time.Second, "    aws_api: true\n    queue_all: true\n"
	c.run(3)
	_, victim := c.coordinator()
	crowd, done := c.crowd(48, 5*time.Second, time.Second, 7)
	c.until("people in line", 10*time.Second, func() bool { return victim.room().Queued > 3 })
	var all []*awsProgram
	var running sync.WaitGroup
	for i := range programs {
		p := &awsProgram{t: t, c: c, at: i}
		p.join()
		all = append(all, p)
		running.Go(func() { p.run(time.Second) })
	}
	c.phase("%d programs have numbers; kill -9 %s", programs, victim.id)
	victim.kill()
	running.Wait()
	err := <-done

	c.phase("by number: %s", served(all))
	for i, p := range all {
		if p.refused > 0 {
			t.Errorf("%d was told that its turn had come, and then %d times that it had not", p.number, p.refused)
		}
		if i > 0 && p.served.Before(all[i-1].served.Add(-time.Second)) { // each looks twice a second
			t.Errorf("%d was served before %d", p.number, all[i-1].number)
		}
		if late := p.in.Sub(p.served); late > 5*time.Second {
			t.Errorf("%d, whose home was %s, had its token %v after its turn", p.number, p.home.id, late)
		}
	}
	c.fair(crowd, err, 0)
}

// served is a line on how programs fared.
func served(all []*awsProgram) (s string) {
	for i, p := range all {
		s += fmt.Sprintf("%d (%s) served after %.1f s, in %.1f s later; ", i, p.home.id, p.served.Sub(all[0].served).Seconds(), p.in.Sub(p.served).Seconds())
	}
	return s
}
