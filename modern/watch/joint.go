package watch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// errMoved is why a stream ends whose changes come on another one from now on: its topics are asked
// for again at once, and are told once after the gap.
var errMoved = errors.New("the server's only stream was opened again, for topics of another profile as well")

// A joint is the only listen stream of a server that supports one at a time (L2M-22). All profiles share it:
// one of its own for each would make all but the last deaf without a word. A profile that asks for more than
// the stream has gets it opened again, with what all ask for.
type joint struct {
	open OpenFunc
	turn chan struct{} // of capacity 1; has an element while a stream is opened

	mu  sync.Mutex   // guards now, and parts and over of all
	now *jointStream // the last one; nil before
}

// A jointStream is one stream of a joint.
type jointStream struct {
	stream Stream
	parts  []*part       // of those who follow it
	over   bool          // it has ended, or is being closed
	done   chan struct{} // closed when nobody reads it any more
}

// A part is what a profile has of a jointStream. It is a [Stream].
type part struct {
	j             *joint
	of            *jointStream
	scope         string
	want, honored mcp.Filter
	topics        map[fanout.Topic]bool // of honored, without the scope
	mail          *fanout.Mailbox
	close         sync.Once
	closing       chan struct{}
}

// listen is an [OpenFunc].
func (j *joint) listen(ctx context.Context, p mcp.Profile, want mcp.Filter) (Stream, error) {
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.now; s != nil && !s.over && len(united(s.stream.Honored(), want)) == len(s.stream.Honored().Topics("")) {
		return j.joinLocked(p, want), nil
	}
	union, stop := want.Topics(""), func() {}
	if former := j.now; former != nil {
		for _, f := range former.parts {
			union = united(filterOf(union), f.want)
		}
		stop = j.endLocked(former, errMoved) // waits for one that is being closed, too
	}
	j.mu.Unlock()
	stop()
	stream, err := j.open(ctx, p, filterOf(union))
	if refusal := (*wire.Error)(nil); errors.As(err, &refusal) && len(union) > len(want.Topics("")) {
		// It may be about what the others follow, who ask again by themselves.
		stream, err = j.open(ctx, p, want)
	}
	j.mu.Lock()
	if err != nil {
		return nil, err
	}
	j.now = &jointStream{stream: stream, done: make(chan struct{})}
	go j.read(j.now) // ends with the stream, which the last part closes, or the next listen
	return j.joinLocked(p, want), nil
}

// joinLocked has a profile follow the stream.
func (j *joint) joinLocked(p mcp.Profile, want mcp.Filter) *part {
	f := &part{j: j, of: j.now, scope: p.Scope, want: want, topics: make(map[fanout.Topic]bool), mail: fanout.NewMailbox(fanout.MailboxOptions{}), closing: make(chan struct{})}
	f.honored = want.Narrow(j.now.stream.Honored().Topics(""))
	for _, t := range f.honored.Topics("") {
		f.topics[t] = true
	}
	j.now.parts = append(j.now.parts, f)
	return f
}

// read passes changes to those who follow a stream.
func (j *joint) read(s *jointStream) {
	defer close(s.done)
	for {
		ev, err := s.stream.Next()
		j.mu.Lock()
		if err != nil {
			j.endLocked(s, err)
			j.mu.Unlock()
			s.stream.Close()
			return
		}
		told := false
		for i, f := range s.parts {
			if f.has(ev.Topic) || !told && i == len(s.parts)-1 { // the last one counts what nobody has asked for
				ev.Topic.Scope, told = f.scope, true
				f.mail.Put(ev)
			}
		}
		j.mu.Unlock()
	}
}

// endLocked ends a stream for its parts. stop ends it upstream, and waits for who reads it.
func (j *joint) endLocked(s *jointStream, reason error) (stop func()) {
	for _, f := range s.parts {
		f.mail.End(reason)
	}
	s.parts, s.over = nil, true
	return func() { s.stream.Close(); <-s.done }
}

// has reports whether a change of a topic is for the part: of a resource also as that of one above it.
func (f *part) has(t fanout.Topic) bool {
	t.Scope = ""
	has := f.topics[t]
	for uri := range fanout.Ancestors(t.URI) {
		has = has || f.topics[fanout.Topic{Kind: t.Kind, URI: uri}]
	}
	return has
}

// Honored implements [Stream].
func (f *part) Honored() mcp.Filter { return f.honored }

// Next implements [Stream].
func (f *part) Next() (fanout.Event, error) {
	for {
		if ev, ok := f.mail.Next(); ok {
			return ev, nil
		}
		if reason, ended := f.mail.Ended(); ended {
			return fanout.Event{}, reason
		}
		select {
		case <-f.mail.Ready():
		case <-f.closing:
			return fanout.Event{}, errLeft
		}
	}
}

// errLeft is why a part ends that its profile has closed.
var errLeft = errors.New("the stream was closed")

// Close implements [Stream]. The last part that leaves ends the stream.
func (f *part) Close() {
	f.close.Do(func() { close(f.closing) })
	f.j.mu.Lock()
	s, at := f.of, slices.Index(f.of.parts, f)
	if at < 0 {
		f.j.mu.Unlock()
		return
	}
	stop := func() {}
	if s.parts = slices.Delete(s.parts, at, at+1); len(s.parts) == 0 {
		stop = f.j.endLocked(s, errLeft)
	}
	f.j.mu.Unlock()
	stop()
}

// united returns the topics of two filters, each once.
func united(a, b mcp.Filter) []fanout.Topic {
	out, has := a.Topics(""), make(map[fanout.Topic]bool)
	for _, t := range out {
		has[t] = true
	}
	for _, t := range b.Topics("") {
		if !has[t] {
			out = append(out, t)
		}
	}
	return out
}
