package front

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// relayedRig returns a front whose server accepts subscriptions, but to x://refused, and
// whose sessions are relayed.
func relayedRig(t *testing.T, change func(*Options)) *rig {
	b, peers := backWithPeers(t)
	st := newRig(t, func(o *Options) {
		o.Relayer = b
		if change != nil {
			change(o)
		}
	})
	go func() { // ends with the connection
		p := <-peers
		p.Handshake(`{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true}}`)
		for {
			text, err := p.Conn.Read()
			if err != nil {
				return
			}
			m, err := wire.Parse(text, wire.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if string(m.Params) == `{"uri":"x://refused"}` {
				p.Write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, m.ID)
				continue
			}
			if !m.ID.IsZero() {
				p.Write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			}
		}
	}()
	return st
}

// followed returns what the only client follows, and who that is.
func (st *rig) followed(t *testing.T) (uris []string, kinds []string, by status.FollowerKey) {
	t.Helper()
	all := st.front.AppendFollowings(nil)
	if len(all) != 1 {
		t.Fatalf("%d clients follow something, want one: %+v", len(all), all)
	}
	for _, k := range all[0].Topics {
		if k.Server != "docs" {
			t.Errorf("a topic is of server %q", k.Server)
		}
		if kinds = append(kinds, k.Kind); k.URI != "" {
			uris = append(uris, k.URI)
		}
	}
	return uris, kinds, all[0].By()
}

// A client whose session is relayed follows the lists that the server reports, and the
// resources whose subscriptions the server has accepted and not ended.
func TestRelayedSessionIsToldOf(t *testing.T) {
	st := relayedRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	uris, kinds, by := st.followed(t)
	if len(uris) > 0 || !slices.Equal(kinds, []string{"toolsListChanged", "resourcesListChanged"}) {
		t.Errorf("at the start it follows %q %q, want the lists of tools and resources", kinds, uris)
	}
	if s := st.only(t); by != (status.FollowerKey{Era: "legacy", Name: by.Name, Principal: "ada", Session: s.name}) || by.Name == "" || by.Session == "" {
		t.Errorf("the follower is %+v", by)
	}
	for _, step := range []struct {
		method, uri string
		want        []string
	}{
		{"resources/subscribe", "x://b", []string{"x://b"}},
		{"resources/subscribe", "x://a", []string{"x://a", "x://b"}},
		{"resources/subscribe", "x://a", []string{"x://a", "x://b"}},
		{"resources/subscribe", "x://refused", []string{"x://a", "x://b"}},
		{"resources/unsubscribe", "x://refused", []string{"x://a", "x://b"}},
		{"resources/unsubscribe", "x://b", []string{"x://a"}},
		{"resources/unsubscribe", "x://b", []string{"x://a"}},
		{"resources/read", "x://c", []string{"x://a"}},
	} {
		g.Call(t, step.method, fmt.Sprintf(`{"uri":%q}`, step.uri))
		if uris, _, _ := st.followed(t); !slices.Equal(uris, step.want) {
			t.Errorf("after %s %s it follows %q, want %q", step.method, step.uri, uris, step.want)
		}
	}
	var clients status.Clients
	st.front.TellClients(&clients, &status.Questions{})
	if len(clients.List) != 1 || clients.List[0].Topics != 3 {
		t.Errorf("the clients are %+v, want one with 3 topics", clients.List)
	}
	st.front.sessions.end(st.only(t), "the test ends it")
	if all := st.front.AppendFollowings(nil); len(all) > 0 {
		t.Errorf("after the session's end %d clients follow something", len(all))
	}
}

// A session that is not relayed is told of by its subscriptions in the gateway's index.
func TestBridgedSessionIsNoFollowing(t *testing.T) {
	st := newRig(t, nil)
	g := st.Enter(t, "2025-11-25")
	g.Call(t, "resources/subscribe", `{"uri":"x://a"}`)
	if all := st.front.AppendFollowings(nil); len(all) > 0 {
		t.Errorf("%d clients are told of twice", len(all))
	}
}

// Whoever subscribes to one resource after another has no more noted than the limit, and
// than the memory that there is.
func TestHardeningNotedSubscriptions(t *testing.T) {
	st := relayedRig(t, func(o *Options) { o.Limits = limits.Set{"listen_topics": 2} })
	g := st.Enter(t, "2025-11-25")
	for i := range 10 {
		if r := g.Call(t, "resources/subscribe", fmt.Sprintf(`{"uri":"x://%d"}`, i)); r.Status != 200 || r.Code() != 0 {
			t.Fatalf("subscription %d = %d %s: the server decides on it", i, r.Status, r.Body)
		}
	}
	if uris, _, _ := st.followed(t); len(uris) != 2 {
		t.Errorf("%d resources are noted, want the 2 of the limit", len(uris))
	}
	g.Call(t, "resources/unsubscribe", `{"uri":"x://0"}`)
	g.Call(t, "resources/subscribe", `{"uri":"x://9"}`)
	if uris, _, _ := st.followed(t); !slices.Equal(uris, []string{"x://1", "x://9"}) {
		t.Errorf("%q are noted after one has made room", uris)
	}
}

// What is noted is memory of the session, and is given back.
func TestHardeningNotedSubscriptionsDrawOnTheMemory(t *testing.T) {
	memory := &smallMemory{Budget: budget.New(2 << 20)}
	st := relayedRig(t, func(o *Options) { o.Memory = memory })
	g := st.Enter(t, "2025-11-25")
	before := memory.Used()
	long := strings.Repeat("x", 100<<10)
	for i := range 10 {
		if r := g.Call(t, "resources/subscribe", fmt.Sprintf(`{"uri":"x://%d%s"}`, i, long)); r.Code() != 0 {
			t.Fatalf("subscription %d = %.200s: the server decides on it", i, r.Body)
		}
	}
	uris, _, _ := st.followed(t)
	if len(uris) == 0 || len(uris) > 5 || memory.Used()-before < int64(len(uris)*len(long)) {
		t.Errorf("%d long resources are noted in %d bytes of 1 MiB", len(uris), memory.Used()-before)
	}
	for _, uri := range uris {
		g.Call(t, "resources/unsubscribe", fmt.Sprintf(`{"uri":%q}`, uri))
	}
	if now := memory.Used(); now > 128<<10 {
		t.Errorf("%d bytes are held after the last subscription", now)
	}
	for i := range 5 {
		g.Call(t, "resources/subscribe", fmt.Sprintf(`{"uri":"x://%d%s"}`, i, long))
	}
	st.front.sessions.end(st.only(t), "the test ends it")
	bridgetest.Eventually(t, "all given back", func() bool { return memory.Used() <= 128<<10 })
}
