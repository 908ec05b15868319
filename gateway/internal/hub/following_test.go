package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A group follows each topic of a member alone, lists too, for whoever it names, and is told what
// is lost: nothing of that is in the log.
func TestG13GroupsFollowTopicByTopic(t *testing.T) {
	r := newRig(t, nil)
	r.source.refused = []string{"a:no"}
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	var lost []fanout.Topic
	f, err := r.Follow(r.source, requestOf("ada").Profile, "all", mail, func(t fanout.Topic, _ error) { lost = append(lost, t) })
	if err != nil {
		t.Fatal(err)
	}
	g := guest{f.Subscription, mail}
	tools := fanout.Topic{Scope: "peer/ada", Kind: fanout.ToolsListChanged}
	for topic, want := range map[fanout.Topic]bool{tools: true, topic("ada", "a:1"): true, topic("ada", "a:no"): false} {
		if held, err := f.Follow(t.Context(), mcp.Share{Principal: "bob"}, topic); held != want || err != nil {
			t.Errorf("Follow(%v) = %v, %v, want %v", topic, held, err, want)
		}
	}
	r.source.wantLog(t, "watch toolsListChanged", "watch a:1", "watch a:no", "release a:no")
	if p := r.source.asked("a:1"); p.Share.Principal != "bob" || f.Profile().Share.Principal != "ada" {
		t.Errorf("a topic was followed for %+v, want the share of the call", p.Share)
	}
	f.Unfollow(tools)
	r.Publish(fanout.Event{Topic: tools})
	r.push("ada", "a:1")
	g.wantHeard(t, "after Unfollow", "a:1")

	r.End(topic("ada", "a:1"), errors.New("refused after a restart"))
	g.wantHeard(t, "after the loss", "a:1")
	if len(lost) != 1 || lost[0] != topic("ada", "a:1") || r.logs.String() != "" {
		t.Errorf("lost %v, log %s, want the topic told and nothing logged", lost, r.logs)
	}
	if _, all := r.SomeStreams(10); all != 0 {
		t.Errorf("%d streams, want none of a group", all)
	}
	of := make([]Follower, 1)
	if r.Followers([]*fanout.Mailbox{mail}, of); of[0].Name.Value() != "group all" || of[0].Principal != "" {
		t.Errorf("the follower is %+v", of[0])
	}

	why := errors.New("replaced")
	r.EndSubscriptions(r.source, why)
	g.wantEnd(t, why)
	f.Close()
	if s := r.Snapshot(); s.Pairs != 0 || s.Members != 0 {
		t.Errorf("snapshot = %+v after Close, want nothing", s)
	}
	if _, err := f.Follow(context.Background(), mcp.Share{}, tools); !errors.Is(err, ErrUnsubscribed) {
		t.Errorf("Follow after Close = %v, want %v", err, ErrUnsubscribed)
	}
	r.source.reason = why
	if f, err := r.Follow(r.source, mcp.Profile{}, "all", mail, nil); err == nil || f != nil {
		t.Errorf("a server that is used no more is followed: %v", err)
	}
}

// Whoever follows the loss of sessions is not told of one when the server is given up: there is no
// other session yet.
func TestG14GivenUpIsNoLoss(t *testing.T) {
	r := newRig(t, nil)
	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	lost := 0
	f, err := r.Follow(r.source, requestOf("ada").Profile, "all", mail, func(fanout.Topic, error) { lost++ })
	if err != nil {
		t.Fatal(err)
	}
	loss := fanout.Topic{Scope: "peer/ada", Kind: fanout.StateLost}
	if held, err := f.Follow(t.Context(), mcp.Share{}, loss); !held || err != nil {
		t.Fatalf("Follow = %v, %v", held, err)
	}
	g := guest{f.Subscription, mail}
	r.Publish(fanout.Event{Topic: loss})
	g.wantHeard(t, "after a loss", "stateLost")
	r.End(loss, errors.New("unreachable"))
	g.wantHeard(t, "after the end", nil...)
	if lost != 1 {
		t.Errorf("told %d times that the topic is lost, want once", lost)
	}
}
