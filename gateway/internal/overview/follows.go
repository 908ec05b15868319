package overview

import (
	"cmp"

	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// fewFollowers is the number of subscribers up to which each is told of by itself.
const fewFollowers = status.MaxFollowers / 2

// key returns what is told of a subscriber: by itself, or as one of those like it.
func key(f *hub.Follower, alone bool) status.FollowerKey {
	k := status.FollowerKey{Era: f.Era.String(), Name: f.Name.Value(), Principal: string(f.Principal)}
	if alone {
		k.Session, k.Number = f.Session, f.Number
	}
	return k
}

// Follows says who follows what, by the index and by others, and returns the number of
// topics, and of pairs of a topic and a subscriber, by server. find sets the followers of
// mailboxes, and returns how many there are in all; one that is not there any more stays
// zero.
func Follows(x *hub.Index, others []status.Following, out *status.Follows, find func(mails []*fanout.Mailbox, of []hub.Follower) (all int)) (topics, pairs map[string]int) {
	topics, pairs = make(map[string]int), make(map[string]int)
	n, _ := x.Len()
	counts := make(map[status.TopicKey]int, n)
	relayed := make(map[status.TopicKey]int)
	x.Walk(func(t fanout.Topic, subs []*fanout.Mailbox) { counts[topicKey(t)] += len(subs) })
	for i := range others {
		for _, k := range others[i].Topics {
			relayed[k]++
			counts[k]++
		}
	}
	for k, n := range counts {
		topics[k.Server]++
		pairs[k.Server] += n
	}
	g := status.NewGraph(counts)
	some := sampleOthers(others, relayed, g)
	mails, places := sample(x, g)
	followers := make([]hub.Follower, len(mails))
	alone := find(mails, followers)+len(others) <= fewFollowers
	some.add(g, alone)
	for i := range followers {
		if f := &followers[i]; f.Number > 0 {
			g.Add(places[i], key(f, alone))
		}
	}
	*out = g.Follows()
	return topics, pairs
}

// sample returns some followers of the topics that a graph has, and the places of these.
func sample(x *hub.Index, g *status.Graph) (mails []*fanout.Mailbox, places []int) {
	x.Walk(func(t fanout.Topic, subs []*fanout.Mailbox) {
		topic, more := g.Wants(topicKey(t))
		if more = min(more, len(subs)); more == 0 {
			return
		}
		g.Take(topic, more)
		mails = append(mails, subs[:more]...)
		for range more {
			places = append(places, topic)
		}
	})
	return mails, places
}

// A pick is followers of which each follows a topic.
type pick struct {
	by     []*status.Following
	places []int
}

// sampleOthers returns some of those that are not in the index; all has how many these are.
// They are as many among all that are looked at as among all that there are.
func sampleOthers(others []status.Following, all map[status.TopicKey]int, g *status.Graph) (p pick) {
	left := make(map[status.TopicKey]int)
	for k, n := range all {
		left[k] = g.Share(k, n)
	}
	for i := range others {
		for _, k := range others[i].Topics {
			if left[k] == 0 {
				continue
			}
			left[k]--
			topic, _ := g.Wants(k)
			g.Take(topic, 1)
			p.by, p.places = append(p.by, &others[i]), append(p.places, topic)
		}
	}
	return p
}

// add adds them to the graph: each by itself, or as one of those like it.
func (p *pick) add(g *status.Graph, alone bool) {
	for i, f := range p.by {
		k := f.By()
		if !alone {
			k.Session = ""
		}
		g.Add(p.places[i], k)
	}
}

// topicKey returns the topic without its profile.
func topicKey(t fanout.Topic) status.TopicKey {
	return status.TopicKey{Server: mcp.ServerOf(t.Scope), Kind: t.Kind.String(), URI: t.URI}
}

// MaxStreams bounds how many listen streams are looked at.
const MaxStreams = 1000

// Streams adds the clients of listen streams, some of all: those of one name and principal
// are one.
func Streams(out *status.Clients, some []hub.Stream, all int) {
	counts := make(map[status.Client]int)
	for i := range some {
		f := &some[i].By
		counts[status.Client{Server: some[i].Server, Era: f.Era.String(), Name: f.Name.Value(), Principal: string(f.Principal), Transport: "stream"}]++
	}
	for c, n := range counts {
		c.Streams = cmp.Or((n*all+len(some)/2)/len(some), n)
		out.Add(c)
	}
}
