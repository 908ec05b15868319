package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// A topics subscription honors all that it is asked for, or fails.
type topics struct {
	mcp.Subscription
	asked mcp.Filter
	err   error
}

func (s *topics) Add(_ context.Context, want mcp.Filter) (mcp.Filter, error) {
	s.asked = want
	return want, s.err
}

// A stream is subscribed to what is left of its filter; the resources of a session were
// admitted one by one.
func TestSubscriptionsAreNarrowed(t *testing.T) {
	const open, secret, etc = "file:///open/a", "file:///open/secret", "file:///etc/a"
	for _, tt := range []struct {
		name   string
		method string
		stream bool
		policy *policy.Policy
		uris   []string
		err    error
		want   []string
		lines  []string
	}{
		{"a stream", spec.MethodListen, true, readers(), []string{etc, open, secret}, nil, []string{open}, []string{"subscriptions/listen resource:file:///etc/a deny 0 refused", "subscriptions/listen resource:file:///open/secret deny 1 refused", "subscriptions/listen : allow 2 ok"}},
		{"a stream of which nothing is left", spec.MethodListen, true, readers(), []string{etc}, nil, nil, []string{"subscriptions/listen resource:file:///etc/a deny 0 refused", "subscriptions/listen : allow 2 ok"}},
		{"a stream that fails", spec.MethodListen, true, readers(), []string{open}, errors.New("EOF"), []string{open}, []string{"subscriptions/listen : allow 2 failed"}},
		{"a stream without a policy", spec.MethodListen, true, nil, []string{etc}, nil, []string{etc}, []string{"subscriptions/listen : allow 0 ok"}},
		{"a stream of an extension", "events/stream", true, readers(), []string{etc}, nil, nil, nil},
		{"a resource", spec.MethodSubscribe, false, readers(), []string{open}, nil, []string{open}, []string{"resources/subscribe resource:file:///open/a allow 2 ok"}},
		{"no resource", spec.MethodInitialize, false, readers(), nil, nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log, behind := newAudit(t), &topics{err: tt.err}
			c := New(Options{Server: "files", Policy: tt.policy, Audit: log.Log})
			sub := c.Subscription(requestOf(tt.method, `{}`), fanout.NewMailbox(fanout.MailboxOptions{}), mcp.SubscribeOptions{Stream: tt.stream}, behind)
			honored, err := sub.Add(t.Context(), mcp.Filter{Tools: true, URIs: tt.uris})
			if !errors.Is(err, tt.err) || !slices.Equal(behind.asked.URIs, tt.want) || !slices.Equal(honored.URIs, tt.want) || !honored.Tools {
				t.Errorf("Add asked for %v, and honors %+v, %v; want %v", behind.asked.URIs, honored, err, tt.want)
			}
			if got := log.lines(t); !slices.Equal(got, tt.lines) {
				t.Errorf("the audit log has %q, want %q", got, tt.lines)
			}
		})
	}
}

// A change of a resource below one that is followed is not told if that one may not be.
func TestMailboxesHideWhatIsDenied(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy *policy.Policy
		want   []string
	}{
		{"with a policy", readers(), []string{"file:///open/a"}},
		{"with one that denies nothing", policy.New(true, nil), []string{"file:///open/a", "file:///open/secret"}},
	} {
		mail := fanout.NewMailbox(fanout.MailboxOptions{})
		New(Options{Server: "files", Policy: tt.policy}).Subscription(requestOf(spec.MethodSubscribe, `{"uri":"file:///open/"}`), mail, mcp.SubscribeOptions{}, &topics{})
		for _, uri := range []string{"file:///open/a", "file:///open/secret"} {
			mail.Put(fanout.Event{Topic: fanout.Topic{Scope: "s", Kind: fanout.ResourceUpdated, URI: "file:///open/"}, URI: uri})
		}
		var got []string
		for ev, ok := mail.Next(); ok; ev, ok = mail.Next() {
			got = append(got, ev.URI)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s the mailbox has %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A told Caller notes what it is told.
type told struct {
	mcp.Caller
	uris []string
}

func (c *told) Notify(_ context.Context, n mcp.Notification) error {
	c.uris = append(c.uris, n.Method+" "+string(n.Params))
	return nil
}

// A stream of its own upstream asks for what is left, and passes on no change of the rest.
func TestListensOfTheirOwnAreNarrowed(t *testing.T) {
	const all = `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///open/a","file:///etc/a","file:///open/\u0073ecret",7]%s},"_meta":{}}`
	allowing := policy.New(true, []policy.Rule{{Deny: true, Resources: []string{"*etc*", "*secret"}}})
	for _, tt := range []struct {
		name   string
		policy *policy.Policy
		more   string
		want   string
		told   int
	}{
		{"denied by default", readers(), `,"x/events":true`, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///open/a"]},"_meta":{}}`, 2},
		{"allowed by default", allowing, `,"x/events":true`, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///open/a"],"x/events":true},"_meta":{}}`, 2},
		{"no policy", nil, "", strings.ReplaceAll(all, "%s", ""), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := &told{}
			server := next{body: `{}`, then: func(_ *mcp.Request, x mcp.Caller) {
				for _, uri := range []string{"file:///open/a", "file:///etc/a"} {
					_ = x.Notify(t.Context(), mcp.Notification{Method: spec.NotifyResourceUpdated, Params: []byte(`{"uri":"` + uri + `"}`)})
				}
				_ = x.Notify(t.Context(), mcp.Notification{Method: spec.NotifyToolsListChanged, Params: []byte(`{"uri":"file:///etc/a"}`)})
			}}
			o := Options{Server: "files", Policy: tt.policy, Limiter: policy.NewLimiter(policy.Rates{})}
			req := requestOf(spec.MethodListen, strings.ReplaceAll(all, "%s", tt.more))
			before := string(req.Params)
			if _, err := New(o).Handler(&server).Serve(t.Context(), req, client); err != nil {
				t.Fatal(err)
			}
			if got := string(server.saw.Params); got != tt.want || string(req.Params) != before {
				t.Errorf("the server is asked for %s, want %s", got, tt.want)
			}
			if len(client.uris) != tt.told {
				t.Errorf("the client is told %q, want %d of 3", client.uris, tt.told)
			}
		})
	}
}

// Of very many resources that a stream may not follow the last line has the number of the rest; what
// the configuration hides is refused as what is not there.
func TestRefusedTopicsAreBounded(t *testing.T) {
	log := newAudit(t)
	c := New(Options{Server: "files", Names: renamed(t), Audit: log.Log})
	uris := []string{"file:///open/a"}
	for i := range maxRefused + 9 {
		uris = append(uris, fmt.Sprintf("file:///vault/%02d", i))
	}
	sub := c.Subscription(requestOf(spec.MethodListen, `{}`), fanout.NewMailbox(fanout.MailboxOptions{}), mcp.SubscribeOptions{Stream: true}, &topics{})
	if _, err := sub.Add(t.Context(), mcp.Filter{URIs: uris}); err != nil {
		t.Fatal(err)
	}
	lines := log.lines(t)
	if len(lines) != maxRefused+1 || lines[0] != "subscriptions/listen resource:file:///vault/00 deny 0 refused" || lines[maxRefused] != "subscriptions/listen : allow 0 ok" {
		t.Errorf("the audit log has %d lines, %q", len(lines), lines)
	}
	text, err := os.ReadFile(log.path)
	if err != nil || strings.Count(string(text), `"times":`) != 1 || !strings.Contains(string(text), `"times":10`) || strings.Count(string(text), "not found") != maxRefused {
		t.Errorf("%v, the log is %s", err, text)
	}
}

// What a member of a group refuses has its line there, with the group, and is told of then.
func TestRefusedByAMember(t *testing.T) {
	log := newAudit(t)
	req := requestOf(spec.MethodSubscribe, "")
	req.Passage = &mcp.Passage{Group: "all"}
	c := New(Options{Server: "files", Policy: readers(), Audit: log.Log})
	c.Refused(t.Context(), req, []string{"file:///etc/a"})
	if got := log.lines(t); !slices.Equal(got, []string{"resources/subscribe resource:file:///etc/a deny 0 refused"}) || !req.Passage.IsTold() {
		t.Errorf("the audit log has %q, told %v", got, req.Passage.IsTold())
	}
	if text, _ := os.ReadFile(log.path); !strings.Contains(string(text), `"group":"all"`) {
		t.Errorf("the line is %s", text)
	}
	(*Control)(nil).Refused(t.Context(), req, nil)
}
