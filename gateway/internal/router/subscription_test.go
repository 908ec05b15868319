package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/gateway/internal/hub"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A guest is a member without a front.
type guest struct {
	*hub.Subscription
	s    *server
	mail *fanout.Mailbox
}

func (r *rig) join(t *testing.T) guest {
	t.Helper()
	s := r.g.now().servers["peer"]
	req := &mcp.Request{Era: spec.Legacy, Principal: mcp.Anonymous, Capabilities: []byte("{}")}
	if err := s.profiles.assign(req); err != nil {
		t.Fatal(err)
	}
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	m, err := r.g.hub.Subscribe(s, req, mail, mcp.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return guest{m, s, mail}
}

// next waits for a change.
func (g guest) next(t *testing.T) string {
	t.Helper()
	for {
		if ev, ok := g.mail.Next(); ok {
			return fmt.Sprint(ev.Topic.Kind, " ", ev.URI)
		}
		select {
		case <-g.mail.Ready():
		case <-t.Context().Done():
			t.Fatal("no change came")
		}
	}
}

func refuseURI(uri string) func(*peerCall) string {
	return func(c *peerCall) string {
		if got, _ := wire.GetString(c.m.Params, "uri"); got == uri {
			return `{"code":-32602,"message":"no"}`
		}
		return `{}`
	}
}

func TestSubscriptionFollowsUpstreamsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["resources/subscribe"] = refuseURI("a:no")
	g := r.join(t)
	honored, err := g.Add(t.Context(), mcp.Filter{Tools: true, URIs: []string{"a:1", "a:no", "a:2"}})
	if err != nil || fmt.Sprint(honored) != "{true false false [a:1 a:2]}" {
		t.Fatalf("Add() = %v, %v, want all but a:no", honored, err)
	}
	r.peer.push(updated("a:no"))
	r.peer.push(updated("a:1"))
	if got := g.next(t); !strings.HasSuffix(got, "a:1") {
		t.Errorf("first change = %q, want a:1's", got)
	}

	g.Remove("a:1", "a:never")
	r.eventually(t, "unsubscribed", func() bool { return len(r.peer.sent("resources/unsubscribe")) == 1 })
	r.peer.push(updated("a:1"))
	r.peer.push(updated("a:2"))
	if got := g.next(t); !strings.HasSuffix(got, "a:2") {
		t.Errorf("after Remove the first change = %q, want a:2's", got)
	}

	if honored, err = g.Add(t.Context(), mcp.Filter{URIs: []string{"a:1"}}); err != nil || len(honored.URIs) != 1 {
		t.Fatalf("Add() after Remove = %v, %v, want a:1", honored, err)
	}
	r.peer.push(updated("a:1"))
	if got := g.next(t); !strings.HasSuffix(got, "a:1") {
		t.Errorf("change = %q, want a:1's: what was given up is heard again", got)
	}
}

func TestSubscriptionLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.join(t)
	if _, err := g.Add(t.Context(), mcp.Filter{Tools: true, URIs: []string{"a:1", "a:2"}}); err != nil {
		t.Fatal(err)
	}
	if s := r.g.Snapshot(); s.Pairs != 3 || s.Members != 1 {
		t.Fatalf("snapshot = %+v, want 3 pairs of 1 member", s)
	}
	g.Close()
	g.Close()
	if s := r.g.Snapshot(); s.Pairs != 0 || s.Members != 0 {
		t.Errorf("snapshot = %+v after Close, want nothing", s)
	}
	r.eventually(t, "unsubscribed", func() bool { return len(r.peer.sent("resources/unsubscribe")) == 2 })
	if _, err := g.Add(t.Context(), mcp.Filter{Tools: true}); !errors.Is(err, hub.ErrUnsubscribed) {
		t.Errorf("Add() after Close = %v, want %v", err, hub.ErrUnsubscribed)
	}
}

func TestSubscriptionRemovedWhileAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	asked, answer := make(chan bool, 2), make(chan bool)
	r.peer.handle["resources/subscribe"] = func(*peerCall) string { asked <- true; <-answer; return `{}` }
	g := r.join(t)
	added := make(chan mcp.Filter)
	go func() {
		honored, _ := g.Add(context.Background(), mcp.Filter{URIs: []string{"a:1"}})
		added <- honored
	}()
	<-asked
	g.Remove("a:1")
	close(answer)
	if honored := <-added; len(honored.URIs) != 0 {
		t.Errorf("Add() = %v though it was removed meanwhile, want nothing", honored)
	}
	r.eventually(t, "unsubscribed", func() bool { return len(r.peer.sent("resources/unsubscribe")) == 1 })
	if s := r.g.Snapshot(); s.Pairs != 0 {
		t.Errorf("%d pairs left, want 0", s.Pairs)
	}
}

// TestSubscriptionLosesTopic: where a listen stream would end, a session goes on
// and is told once more.
func TestSubscriptionLosesTopic(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.join(t)
	if _, err := g.Add(t.Context(), mcp.Filter{URIs: []string{"a:1", "a:2"}}); err != nil {
		t.Fatal(err)
	}
	lost := mcp.Filter{URIs: []string{"a:1"}}.Topics(g.Profile().Scope)[0]
	r.g.hub.End(lost, errors.New("refused after a restart"))
	if got := g.next(t); !strings.HasSuffix(got, "a:1") {
		t.Errorf("change = %q, want a last one of a:1", got)
	}
	if _, ended := g.mail.Ended(); ended || r.g.hub.Wanted(lost) {
		t.Errorf("mailbox ended = %v, topic wanted = %v, want neither", ended, r.g.hub.Wanted(lost))
	}
	if honored, err := g.Add(t.Context(), mcp.Filter{URIs: []string{lost.URI}}); err != nil || len(honored.URIs) != 1 {
		t.Errorf("Add() of what was lost = %v, %v, want it back", honored, err)
	}
}

func TestSubscriptionEndsWithGateway(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.join(t)
	r.g.EndStreams()
	<-g.mail.Ready()
	if reason, ended := g.mail.Ended(); !ended || reason != mcp.ErrShutdown {
		t.Errorf("Ended() = %v, %v, want %v", reason, ended, mcp.ErrShutdown)
	}
	if _, err := r.g.hub.Subscribe(g.s, &mcp.Request{Profile: g.Profile()}, g.mail, mcp.SubscribeOptions{}); err == nil {
		t.Error("Subscribe() after the end succeeded")
	}
}
