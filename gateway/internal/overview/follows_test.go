package overview

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/index"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// A crowd is an index, and whom its mailboxes are of.
type crowd struct {
	*hub.Index
	of   map[*fanout.Mailbox]hub.Follower
	last uint64
}

func newCrowd() *crowd {
	return &crowd{Index: index.New[fanout.Topic, *fanout.Mailbox](index.Options{}), of: make(map[*fanout.Mailbox]hub.Follower)}
}

// follow has a new client follow topics.
func (c *crowd) follow(name string, topics ...fanout.Topic) *fanout.Mailbox {
	c.last++
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	c.of[mail] = hub.NewFollower(&mcp.Request{ClientInfo: []byte(fmt.Sprintf(`{"name":%q,"version":"1"}`, name)), Principal: "ada", Era: spec.Modern, Session: fmt.Sprint("s", c.last)}, c.last)
	for _, t := range topics {
		c.Subscribe(t, mail)
	}
	return mail
}

func (c *crowd) find(mails []*fanout.Mailbox, of []hub.Follower) int {
	for i, mail := range mails {
		of[i] = c.of[mail]
	}
	return len(c.of)
}

func (c *crowd) follows(others ...status.Following) (f status.Follows, topics, pairs map[string]int) {
	topics, pairs = Follows(c.Index, others, &f, c.find)
	return f, topics, pairs
}

func resource(scope, uri string) fanout.Topic {
	return fanout.Topic{Scope: scope, Kind: fanout.ResourceUpdated, URI: uri}
}

// relayed returns a client of the server docs whose session is relayed.
func relayed(session string, uris ...string) status.Following {
	f := status.Following{By: func() status.FollowerKey {
		return status.FollowerKey{Era: "legacy", Name: "relayed/1", Principal: "bob", Session: session}
	}}
	for _, uri := range uris {
		f.Topics = append(f.Topics, status.TopicKey{Server: "docs", Kind: "resourceUpdated", URI: uri})
	}
	return f
}

// lines returns the edges as text.
func lines(f *status.Follows) []string {
	out := []string{}
	for _, e := range f.Edges {
		by, topic := f.Followers[e.Follower], f.Topics[e.Topic]
		out = append(out, fmt.Sprintf("%s %s %s %s -%d- %s %s%s", by.Era, by.Name, by.Principal, by.Session, e.Count, topic.Server, topic.Kind, topic.URI))
	}
	slices.Sort(out)
	return out
}

// Who is in the index and who is not is told of in the same way, each by itself. Topics of
// several profiles are one, and one of another server is another.
func TestFollows(t *testing.T) {
	c := newCrowd()
	c.follow("one", resource("docs@1/ada", "x://a"), fanout.Topic{Scope: "docs@1/ada", Kind: fanout.ToolsListChanged})
	c.follow("two", resource("docs@1/bob", "x://a"))
	c.follow("two", resource("files@2/bob", "x://a"))
	f, topics, pairs := c.follows(relayed("r1", "x://a", "x://b"), relayed("r2", "x://b"))
	want := []string{
		"legacy relayed/1 bob r1 -1- docs resourceUpdatedx://a",
		"legacy relayed/1 bob r1 -1- docs resourceUpdatedx://b",
		"legacy relayed/1 bob r2 -1- docs resourceUpdatedx://b",
		"modern one/1 ada s1 -1- docs resourceUpdatedx://a",
		"modern one/1 ada s1 -1- docs toolsListChanged",
		"modern two/1 ada s2 -1- docs resourceUpdatedx://a",
		"modern two/1 ada s3 -1- files resourceUpdatedx://a",
	}
	if got := lines(&f); !slices.Equal(got, want) {
		t.Errorf("the edges are\n%q, want\n%q", got, want)
	}
	if top := f.Topics[0]; top.URI != "x://a" || top.Server != "docs" || top.Followers != 3 || f.Sampled {
		t.Errorf("first comes %+v, sampled %v; want x://a of docs with 3 followers", top, f.Sampled)
	}
	if want := map[string]int{"docs": 3, "files": 1}; !maps.Equal(topics, want) {
		t.Errorf("topics by server = %v, want %v", topics, want)
	}
	if want := map[string]int{"docs": 6, "files": 1}; !maps.Equal(pairs, want) {
		t.Errorf("pairs by server = %v, want %v", pairs, want)
	}
}

// A subscriber that has left meanwhile is not told of.
func TestFollowsWithoutOneWhoHasLeft(t *testing.T) {
	c := newCrowd()
	delete(c.of, c.follow("gone", resource("docs", "x://a")))
	c.follow("here", resource("docs", "x://a"))
	f, _, _ := c.follows()
	if got := lines(&f); len(got) != 1 || len(f.Followers) != 1 || f.Followers[0].Name != "here/1" {
		t.Errorf("the edges are %q of %+v", got, f.Followers)
	}
}

// With no followers the lists are there, and empty.
func TestFollowsOfNobody(t *testing.T) {
	f, topics, pairs := newCrowd().follows()
	if f.Followers == nil || f.Topics == nil || f.Edges == nil || len(f.Topics)+len(topics)+len(pairs) != 0 {
		t.Errorf("%+v, %v, %v", f, topics, pairs)
	}
}

// With many followers those of one name are one, whatever their sessions, and both kinds of
// followers have their share of those that are looked at.
func TestFollowsOfMany(t *testing.T) {
	c := newCrowd()
	for range 300 {
		c.follow("many", resource("docs", "x://a"))
	}
	var others []status.Following
	for i := range 100 {
		others = append(others, relayed(fmt.Sprint("r", i), "x://a"))
	}
	f, _, pairs := c.follows(others...)
	if pairs["docs"] != 400 || !f.Sampled || len(f.Followers) != 2 || f.Topics[0].Followers != 400 {
		t.Fatalf("%d pairs, sampled %v, of %+v", pairs["docs"], f.Sampled, f.Followers)
	}
	for _, by := range f.Followers {
		want := map[string]int{"many/1": 300, "relayed/1": 100}[by.Name]
		if by.Session != "" || by.Count < want-15 || by.Count > want+15 {
			t.Errorf("%+v, want about %d, and no session", by, want)
		}
	}
}

// Clients of relayed sessions alone are told of by themselves up to as many as others.
func TestFollowsOfManyRelayed(t *testing.T) {
	for n, alone := range map[int]bool{fewFollowers: true, fewFollowers + 1: false} {
		var others []status.Following
		for i := range n {
			others = append(others, relayed(fmt.Sprint("r", i), "x://a"))
		}
		if f, _, _ := newCrowd().follows(others...); (len(f.Followers) == n) != alone || !alone && len(f.Followers) != 1 {
			t.Errorf("of %d clients %d are told of", n, len(f.Followers))
		}
	}
}

// Listen streams of one name, principal and server are one client; numbers are projected to
// all there are.
func TestStreams(t *testing.T) {
	by := func(name string, p mcp.Principal) hub.Follower {
		return hub.NewFollower(&mcp.Request{ClientInfo: []byte(`{"name":"` + name + `"}`), Principal: p, Era: spec.Modern}, 1)
	}
	some := []hub.Stream{{Server: "docs", By: by("a", "ada")}, {Server: "docs", By: by("a", "ada")}, {Server: "docs", By: by("a", "bob")}, {Server: "files", By: by("a", "ada")}}
	for _, tt := range []struct{ all, want int }{{4, 2}, {400, 200}, {0, 2}} {
		var out status.Clients
		Streams(&out, some, tt.all)
		out.Sort()
		if len(out.List) != 3 || out.List[0].Streams != tt.want || out.List[0].Principal != "ada" || out.List[0].Transport != "stream" || out.List[0].Era != "modern" || out.List[2].Server != "files" {
			t.Errorf("of %d streams the clients are %+v, want %d of the first", tt.all, out.List, tt.want)
		}
	}
}
