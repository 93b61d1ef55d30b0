package replog

import (
	"sync"

	"github.com/hashicorp/raft"
)

// transport is raft's own, with pipelines that do not block the leader for good.
type transport struct{ *raft.NetworkTransport }

// AppendEntriesPipeline opens a pipeline to a follower.
func (t transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	d := &pipeline{AppendPipeline: p, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go d.pass()
	return d, nil
}

// pipeline passes on what a follower answers. Raft listens no more after the first
// answer that is a refusal, as of a follower whose disk is full; but it may be about to
// send, for which its pipeline has no room until somebody takes the answers. The leader
// would never send that follower anything again.
type pipeline struct {
	raft.AppendPipeline
	answers chan raft.AppendFuture
	closing sync.Once
	closed  chan struct{}
}

func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

func (p *pipeline) pass() {
	refused := false
	for {
		select {
		case <-p.closed:
			return
		case f := <-p.AppendPipeline.Consumer():
			if refused {
				continue
			}
			select {
			case <-p.closed:
				return
			case p.answers <- f:
				refused = !f.Response().Success
			}
		}
	}
}

func (p *pipeline) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}
