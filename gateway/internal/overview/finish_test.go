package overview

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

const secret = "s3cret-of-the-configuration"

func unfinished() *status.Snapshot {
	out := &status.Snapshot{Servers: []status.Server{
		{Name: "docs", Topics: 2, Followers: 5, Upstream: status.Upstream{Era: "legacy", EraReason: "it said " + secret, LastError: "401 for " + secret}},
		{Name: "files", Topics: 1, Followers: 1, Upstream: status.Upstream{Era: "modern"}},
		{Name: "gone", Upstream: status.Upstream{Era: spec.Unknown.String()}},
	}}
	for _, name := range []string{"zoe", "ada"} {
		out.Clients.Add(status.Client{Server: "docs", Name: name})
	}
	for _, server := range []string{"docs", "docs", "files"} {
		out.Questions.Add(status.Question{Server: server, Text: "is it " + secret + "?"})
	}
	out.Questions.Left = 4
	return out
}

// No secret of the configuration is in what is told, and what servers ask is told only if
// that is wanted.
func TestFinishHidesSecrets(t *testing.T) {
	r := redact.New(secret)
	for _, texts := range []bool{true, false} {
		out := unfinished()
		Finish(out, r, texts)
		for i, s := range out.Servers {
			if strings.Contains(s.LastError+s.EraReason, secret) {
				t.Errorf("server %d has a secret: %+v", i, s.Upstream)
			}
		}
		if !strings.HasPrefix(out.Servers[0].LastError, "401 for ") || !strings.HasPrefix(out.Servers[0].EraReason, "it said ") {
			t.Errorf("more than the secret is missing: %+v", out.Servers[0].Upstream)
		}
		for _, q := range out.Questions.List {
			if strings.Contains(q.Text, secret) || strings.HasPrefix(q.Text, "is it ") != texts {
				t.Errorf("with texts %v a question is %q", texts, q.Text)
			}
		}
	}
}

// What all servers have is counted, a configured era has its reason, and clients are sorted.
func TestFinishCounts(t *testing.T) {
	out := unfinished()
	Finish(out, nil, false)
	if c := out.Counts; c.Topics != 3 || c.Pairs != 6 || c.Questions != 7 {
		t.Errorf("the counts are %+v, want 3 topics, 6 pairs, 7 questions", c)
	}
	for i, want := range []int{2, 1, 0} {
		if got := out.Servers[i].Questions; got != want {
			t.Errorf("server %d has %d questions, want %d", i, got, want)
		}
	}
	if out.Servers[1].EraReason != "the configuration says so" || out.Servers[2].EraReason != "" {
		t.Errorf("the eras are because of %q and %q", out.Servers[1].EraReason, out.Servers[2].EraReason)
	}
	if out.Clients.List[0].Name != "ada" {
		t.Errorf("the clients are %+v", out.Clients.List)
	}
}

// A back tells of its server, if it can.
func TestServer(t *testing.T) {
	told := status.Server{Name: "docs", State: "ready", Topics: 3}
	if got := Server(told, back{}); got.Era != "legacy" || got.Name != "docs" || got.Topics != 3 || got.Sessions != 0 {
		t.Errorf("of a back that does not tell: %+v", got)
	}
	if got := Server(told, tellingBack{}); got.Era != "legacy" || got.Sessions != 7 || got.State != "ready" {
		t.Errorf("of one that does: %+v", got)
	}
}

type back struct{ mcp.Back }

func (back) Era() spec.Era { return spec.Legacy }

type tellingBack struct{ back }

func (tellingBack) Tell(u *status.Upstream) { u.Sessions = 7 }

var errNo = errors.New("no")
