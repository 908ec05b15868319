package status

import (
	"fmt"
	"slices"
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

// The followers with most subscriptions come first, equal ones in an order that stays, and
// the widest edges too.
func TestGraphOrder(t *testing.T) {
	a, b := TopicKey{"s", "resourceUpdated", "x://a"}, TopicKey{"s", "resourceUpdated", "x://b"}
	g := NewGraph(map[TopicKey]int{b: 3, a: 6})
	most, next, p, q := FollowerKey{Name: "most"}, FollowerKey{Name: "next"}, FollowerKey{Name: "equal", Principal: "p"}, FollowerKey{Name: "equal", Principal: "q"}
	for _, add := range []struct {
		topic TopicKey
		by    FollowerKey
		n     int
	}{{a, q, 1}, {a, p, 1}, {a, next, 3}, {a, most, 1}, {b, most, 3}} {
		topic, _ := g.Wants(add.topic)
		g.Take(topic, add.n)
		for range add.n {
			g.Add(topic, add.by)
		}
	}
	f := g.Follows()
	var got []string
	for _, by := range f.Followers {
		got = append(got, by.ID+" "+by.Name+by.Principal+fmt.Sprint(by.Count))
	}
	if want := []string{"c0 most4", "c1 next3", "c2 equalp1", "c3 equalq1"}; !slices.Equal(got, want) {
		t.Errorf("the followers are %q, want %q", got, want)
	}
	if want := []Edge{{0, 1, 3}, {1, 0, 3}, {0, 0, 1}, {2, 0, 1}, {3, 0, 1}}; !slices.Equal(f.Edges, want) {
		t.Errorf("the edges are %+v, want %+v", f.Edges, want)
	}
	if f.Topics[0].URI != "x://a" || f.Topics[0].ID != "t0" || f.Topics[0].Followers != 6 || f.Sampled {
		t.Errorf("the topics are %+v, sampled %v", f.Topics, f.Sampled)
	}
}

// A topic that is not listed wants no followers, and one that is wants so many and no more.
func TestGraphWants(t *testing.T) {
	counts := make(map[TopicKey]int)
	for i := range MaxTopics + 1 {
		counts[TopicKey{"s", "resourceUpdated", fmt.Sprint(i)}] = 100 + i
	}
	g := NewGraph(counts)
	least, most := TopicKey{"s", "resourceUpdated", "0"}, TopicKey{"s", "resourceUpdated", fmt.Sprint(MaxTopics)}
	if _, more := g.Wants(least); more != 0 || g.Share(least, 100) != 0 {
		t.Errorf("a topic that is not listed wants %d, a share of %d", more, g.Share(least, 100))
	}
	topic, more := g.Wants(most)
	if topic != 0 || more != maxSample {
		t.Errorf("the first topic is at %d and wants %d", topic, more)
	}
	g.Take(topic, maxSample-1)
	if _, more := g.Wants(most); more != 1 {
		t.Errorf("it wants %d after all but one", more)
	}
}

// Some followers of a topic have a part of those that are looked at, and never none.
func TestGraphShare(t *testing.T) {
	few, many := TopicKey{Server: "few"}, TopicKey{Server: "many"}
	g := NewGraph(map[TopicKey]int{few: maxSample, many: 10 * maxSample})
	for _, tt := range []struct {
		of      TopicKey
		n, want int
	}{{few, 7, 7}, {few, maxSample, maxSample}, {many, 10 * maxSample, maxSample}, {many, 5 * maxSample, maxSample / 2}, {many, 1, 1}, {many, 0, 0}} {
		if got := g.Share(tt.of, tt.n); got != tt.want {
			t.Errorf("Share(%s, %d) = %d, want %d", tt.of.Server, tt.n, got, tt.want)
		}
	}
}
