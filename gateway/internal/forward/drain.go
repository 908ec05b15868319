package forward

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// A drain is how this replica gives up its sessions.
type drain struct {
	group      *handover.Group
	begun      atomic.Bool
	begin, end sync.Once
	ending     chan struct{} // see handover.Pace
	done       chan struct{} // closed when all is handed over that can be
	stop       context.CancelFunc
}

// Drain begins to hand over the sessions of legacy clients that other replicas can go on with,
// once: of the servers that it is called with first.
func (g *Group) Drain(servers []*Server) {
	d := &g.drain
	d.begin.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		d.ending, d.done, d.stop = make(chan struct{}), make(chan struct{}), stop
		var handed []handover.Server
		for _, s := range servers {
			handed = append(handed, s.handedOver())
		}
		d.begun.Store(true)
		go func() { // AwaitDrain waits for it
			defer close(d.done)
			d.group.Leave(ctx, handed, handover.Pace{Hurry: g.opts.Streams.Done(), Ending: d.ending})
		}()
	})
}

// AwaitDrain waits, after Drain, until all sessions are handed over that can be, at most until
// ctx ends. There are no new ones.
func (g *Group) AwaitDrain(ctx context.Context) {
	d := &g.drain
	d.end.Do(func() { close(d.ending) })
	_ = wake.Await(ctx, d.done) // what is left ends
	d.stop()
	<-d.done
}

// handedOver returns the server as one whose sessions are handed over. Those of a legacy server
// have a state there.
func (s *Server) handedOver() handover.Server {
	return handover.Server{Name: s.o.Name, Front: s.o.Front, Stateless: func() bool { return s.o.Back.Era() == spec.Modern }, Heir: s.heir, Took: s.took}
}

// ServeHandover takes sessions of a replica that ends: from is its instance.
func (g *Group) ServeHandover(w http.ResponseWriter, r *http.Request, from string, s *Server) {
	g.drain.group.Serve(w, r, from, s.handedOver())
}
