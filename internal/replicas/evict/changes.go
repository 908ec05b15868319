package evict

import (
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// maxBatch is how many changes are told at once.
const maxBatch = 1024

// Changes has the other replicas evict what a change makes stale before it passes the change
// on. Publish does not wait: changes wait in a mailbox, where they coalesce. Methods other
// than Publish are those of the next.
type Changes struct {
	mcp.Changes // the next
	g           *Group
	server      string
	mail        *fanout.Mailbox
	end         sync.Once
	ending      chan struct{}
	done        chan struct{} // closed when run has returned
}

// Open returns the Changes of a server, which pass changes on to next. The caller must call
// Close.
func (g *Group) Open(server string, next mcp.Changes) *Changes {
	c := &Changes{Changes: next, g: g, server: server, mail: fanout.NewMailbox(fanout.MailboxOptions{}), ending: make(chan struct{}), done: make(chan struct{})}
	g.begin.Do(func() { g.running.Go(g.watchFreshness) }) // ends with the Group
	go c.run()                                            // Close ends it, and waits
	return c
}

// Publish implements [mcp.Changes].
func (c *Changes) Publish(ev fanout.Event) {
	select {
	case <-c.ending:
		c.Changes.Publish(ev)
		return
	default:
	}
	if c.mail.Len() == 0 && len(c.g.others()) == 0 {
		c.Changes.Publish(ev)
		return
	}
	c.g.opts.Cache.Evict(ev)
	c.mail.Put(ev)
}

// Close passes on what is left, without a wait. Later changes are passed on at once.
func (c *Changes) Close() {
	if c == nil {
		return
	}
	c.end.Do(func() { close(c.ending) })
	<-c.done
}

func (c *Changes) run() {
	defer close(c.done)
	for {
		select {
		case <-c.mail.Ready():
		case <-c.ending:
			c.pass(c.take())
			return
		}
		for batch := c.take(); len(batch) > 0; batch = c.take() {
			if shared := withoutLosses(batch); len(shared) > 0 {
				c.g.wait(c.server, c.g.tell(c.server, shared))
			}
			c.pass(batch)
		}
	}
}

// take returns the next changes.
func (c *Changes) take() (batch []fanout.Event) {
	for len(batch) < maxBatch {
		ev, ok := c.mail.Next()
		if !ok {
			break
		}
		batch = append(batch, ev)
	}
	return batch
}

// withoutLosses returns the changes that concern other replicas: a session is one replica's.
func withoutLosses(batch []fanout.Event) []fanout.Event {
	return slices.DeleteFunc(slices.Clone(batch), func(ev fanout.Event) bool { return ev.Topic.Kind == fanout.StateLost })
}

func (c *Changes) pass(batch []fanout.Event) {
	for _, ev := range batch {
		c.Changes.Publish(ev)
	}
}
