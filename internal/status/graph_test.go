package status

import (
	"fmt"
	"testing"
)

// With few followers each is told of by itself, and each pair is an edge.
func TestGraph(t *testing.T) {
	a, b := TopicKey{"s", "resourceUpdated", "x://a"}, TopicKey{"s", "toolsListChanged", ""}
	g := NewGraph(map[TopicKey]int{a: 2, b: 1})
	one, two := FollowerKey{Name: "one", Number: 1}, FollowerKey{Name: "two", Number: 2}
	for key, by := range map[TopicKey][]FollowerKey{a: {one, two}, b: {one}} {
		topic, more := g.Wants(key)
		g.Take(topic, min(more, len(by)))
		for _, f := range by {
			g.Add(topic, f)
		}
	}
	f := g.Follows()
	if len(f.Followers) != 2 || len(f.Topics) != 2 || len(f.Edges) != 3 || f.Sampled || f.Topics[0].URI != "x://a" || f.Topics[0].Followers != 2 {
		t.Errorf("the graph is %+v", f)
	}
}

// With many, the topics with the most followers are told, and numbers are projected.
func TestGraphIsBounded(t *testing.T) {
	counts := make(map[TopicKey]int)
	for i := range 10_000 {
		counts[TopicKey{"s", "resourceUpdated", fmt.Sprint(i)}] = 1 + i
	}
	g := NewGraph(counts)
	for key := range counts {
		topic, more := g.Wants(key)
		more = min(more, counts[key])
		g.Take(topic, more)
		for i := range more {
			g.Add(topic, FollowerKey{Name: fmt.Sprint("client ", counts[key]%400+i)})
		}
	}
	f := g.Follows()
	if len(f.Topics) != MaxTopics || len(f.Followers) != MaxFollowers || f.TopicsLeft != 10_000-MaxTopics || f.FollowersLeft == 0 || !f.Sampled || len(f.Edges) > MaxEdges {
		t.Errorf("%d topics, %d left, %d followers, %d left, %d edges", len(f.Topics), f.TopicsLeft, len(f.Followers), f.FollowersLeft, len(f.Edges))
	}
	if f.Topics[0].Followers != 10_000 || f.Edges[0].Count != 333 {
		t.Errorf("the first topic has %d followers, the first edge stands for %d, want 10000 and one in thirty of it", f.Topics[0].Followers, f.Edges[0].Count)
	}
}
