package status

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// maxSample bounds how many subscribers of one topic are looked at.
const maxSample = 30

// A TopicKey is a topic without the profile that it is of.
type TopicKey struct{ Server, Kind, URI string }

// A FollowerKey is what is known of a subscriber. Number is zero for what stands for all
// subscribers with the other fields.
type FollowerKey struct {
	Era, Name, Principal, Session string
	Number                        uint64
}

// A Graph collects who follows what. It takes the topics with the most followers first, and
// then a sample of the followers of these, so that its cost has a bound.
type Graph struct {
	follows Follows
	topics  map[TopicKey]int // places in follows.Topics
	sampled []int            // how many followers were looked at, by topic
	counts  map[FollowerKey][]int
}

// NewGraph returns a Graph of the topics with the most followers.
func NewGraph(followers map[TopicKey]int) *Graph {
	keys := slices.SortedFunc(maps.Keys(followers), func(a, b TopicKey) int {
		return cmp.Or(cmp.Compare(followers[b], followers[a]), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.URI, b.URI))
	})
	g := &Graph{topics: make(map[TopicKey]int), counts: make(map[FollowerKey][]int)}
	for i, k := range keys[:min(len(keys), MaxTopics)] {
		g.topics[k] = i
		g.follows.Topics = append(g.follows.Topics, Topic{ID: "t" + strconv.Itoa(i), Server: k.Server, Kind: k.Kind, URI: k.URI, Followers: followers[k]})
	}
	g.follows.TopicsLeft = len(keys) - len(g.topics)
	g.sampled = make([]int, len(g.topics))
	return g
}

// Wants returns the topic's place, and how many more of its followers are to be looked at.
func (g *Graph) Wants(k TopicKey) (topic, more int) {
	topic, ok := g.topics[k]
	if !ok {
		return 0, 0
	}
	return topic, maxSample - g.sampled[topic]
}

// Share returns how many of n followers of a topic are to be looked at, so that these are
// among those that are looked at as they are among all.
func (g *Graph) Share(k TopicKey, n int) int {
	topic, ok := g.topics[k]
	if !ok {
		return 0
	}
	all := g.follows.Topics[topic].Followers
	if all <= maxSample {
		return n
	}
	return (maxSample*n + all - 1) / all
}

// Take says that n followers of a topic are looked at.
func (g *Graph) Take(topic, n int) { g.sampled[topic] += n }

// Add adds a follower of a topic.
func (g *Graph) Add(topic int, by FollowerKey) {
	if g.counts[by] == nil {
		g.counts[by] = make([]int, len(g.topics))
	}
	g.counts[by][topic]++
}

// Follows returns what was collected.
func (g *Graph) Follows() Follows {
	f := &g.follows
	f.Followers, f.Edges = []Follower{}, []Edge{}
	if f.Topics == nil {
		f.Topics = []Topic{}
	}
	sums := make(map[FollowerKey]int, len(g.counts))
	for by, of := range g.counts {
		for topic, n := range of {
			sums[by] += g.project(topic, n)
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b FollowerKey) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Era, b.Era),
			cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Number, b.Number))
	})
	f.FollowersLeft = max(0, len(keys)-MaxFollowers)
	for i, by := range keys[:len(keys)-f.FollowersLeft] {
		f.Followers = append(f.Followers, Follower{ID: "c" + strconv.Itoa(i), Era: by.Era, Name: by.Name, Principal: by.Principal, Session: by.Session, Count: sums[by]})
		g.addEdges(i, g.counts[by])
	}
	slices.SortStableFunc(f.Edges, func(a, b Edge) int { return cmp.Compare(b.Count, a.Count) })
	f.EdgesLeft = max(0, len(f.Edges)-MaxEdges)
	f.Edges = f.Edges[:len(f.Edges)-f.EdgesLeft]
	return *f
}

func (g *Graph) addEdges(follower int, counts []int) {
	for topic, n := range counts {
		if n > 0 {
			g.follows.Edges = append(g.follows.Edges, Edge{Follower: follower, Topic: topic, Count: g.project(topic, n)})
		}
	}
}

// project returns how many of all followers of a topic n of those stand for that were
// looked at.
func (g *Graph) project(topic, n int) int {
	all, seen := g.follows.Topics[topic].Followers, g.sampled[topic]
	if seen == 0 || seen >= all {
		return n
	}
	g.follows.Sampled = true
	return (n*all + seen/2) / seen
}
