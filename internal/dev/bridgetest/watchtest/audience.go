// Package watchtest stands for the gateway's hub in tests of what watches servers: it counts
// who wants which topic, notes what is told, and calls Watch as the gateway does.
package watchtest

import (
	"slices"
	"strings"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A Journal is what happened in a test, in order. Safe for concurrent use.
type Journal struct {
	// Told gets every line as well, if not nil. Set before the first.
	Told chan string

	mu    sync.Mutex
	lines []string
}

// Add notes that something happened.
func (j *Journal) Add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	if j.Told != nil {
		j.Told <- line
	}
}

// Take returns what happened since the last time.
func (j *Journal) Take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.lines
	j.lines = nil
	return out
}

// SortRuns sorts each run of lines that begin with the same word: for what may happen in
// any order.
func SortRuns(lines []string) []string {
	out := slices.Clone(lines)
	for from, to := 0, 0; from < len(out); from = to {
		verb, _, _ := strings.Cut(out[from], " ")
		for to = from; to < len(out) && strings.HasPrefix(out[to], verb+" "); to++ {
		}
		slices.Sort(out[from:to])
	}
	return out
}

// An Audience stands for the gateway's hub, to which backs tell changes: it counts who
// wants what, and notes in Log what is told: "event <topic>", followed by
// " as <URI>" where that is another, and the _meta; "end <topic>"; "dropped: <what>".
type Audience struct {
	mcp.NoMetrics // but for Dropped

	Log   *Journal
	OnEnd func(fanout.Topic) // called for each topic that is ended, if not nil

	mu     sync.Mutex
	counts map[fanout.Topic]int
	events []fanout.Event
	ended  map[fanout.Topic]error
}

// NewAudience returns an Audience that wants nothing.
func NewAudience(log *Journal) *Audience {
	return &Audience{Log: log, counts: make(map[fanout.Topic]int), ended: make(map[fanout.Topic]error)}
}

// Publish implements mcp.Changes.
func (a *Audience) Publish(ev fanout.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, ev)
	line := "event " + TopicName(ev.Topic)
	if ev.URI != ev.Topic.URI {
		line += " as " + ev.URI
	}
	a.Log.Add(line + string(ev.Meta))
}

// Wanted implements mcp.Changes.
func (a *Audience) Wanted(t fanout.Topic) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[t] > 0
}

// End implements mcp.Changes.
func (a *Audience) End(t fanout.Topic, reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended[t] = reason
	a.Log.Add("end " + TopicName(t))
	if a.OnEnd != nil {
		a.OnEnd(t)
	}
}

// Want has n more want the topics; n may be negative.
func (a *Audience) Want(n int, topics ...fanout.Topic) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range topics {
		a.counts[t] += n
	}
}

// Events returns what was published.
func (a *Audience) Events() []fanout.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.events)
}

// Ended returns how many topics were ended, and why that one.
func (a *Audience) Ended(t fanout.Topic) (n int, reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ended), a.ended[t]
}

// Dropped implements [mcp.Metrics].
func (a *Audience) Dropped(_, what string) { a.Log.Add("dropped: " + what) }

// URITopics returns the topics of URIs in a scope.
func URITopics(scope string, uris ...string) []fanout.Topic {
	var out []fanout.Topic
	for _, u := range uris {
		out = append(out, fanout.Topic{Scope: scope, Kind: fanout.ResourceUpdated, URI: u})
	}
	return out
}

// TopicName returns the URI of a topic, or the name of its kind.
func TopicName(t fanout.Topic) string {
	if t.Kind == fanout.ResourceUpdated {
		return t.URI
	}
	return t.Kind.String()
}

// TopicNames joins the names of topics with spaces.
func TopicNames(topics []fanout.Topic) string {
	var out []string
	for _, t := range topics {
		out = append(out, TopicName(t))
	}
	return strings.Join(out, " ")
}
