package router

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/policy"
)

// servedBy counts requests by the server, and the group through which they came.
type servedBy struct {
	mcp.NoMetrics
	mu  sync.Mutex
	all []string
}

func (s *servedBy) Request(of mcp.Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", of.Server, of.Method, of.Outcome, of.Group)))
}

// take returns what was counted since the last time, in order.
func (s *servedBy) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Sorted(slices.Values(s.all))
	s.all = nil
	return all
}

// An observed is a trace.Observer that notes who has served what.
type observed struct {
	mu  sync.Mutex
	all []string
}

func (o *observed) Begin(r *trace.Request) trace.Record {
	r.Subject()
	return observedEnd{o}
}

func (o *observed) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	o.all = nil
	return all
}

type observedEnd struct{ o *observed }

func (observedEnd) Upstream(*trace.Exchange) {}
func (observedEnd) Answered(*trace.Exchange) {}
func (observedEnd) Event(trace.Event)        {}
func (observedEnd) Follows(trace.Record)     {}

func (e observedEnd) End(r *trace.Request) {
	outcome, _, _ := r.Outcome()
	server, group, name := r.Served()
	e.o.mu.Lock()
	defer e.o.mu.Unlock()
	e.o.all = append(e.o.all, strings.Join(strings.Fields(strings.Join([]string{server, group, r.Method, name, outcome}, " ")), " "))
}

// groupLines returns what lines of a log, of JSON, say of what was asked of whom.
func groupLines(t *testing.T, text string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l struct{ Msg, Upstream, Server, Group, Method, Name, Decision, Outcome string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if l.Msg == "" || l.Msg == "request" {
			lines = append(lines, strings.Join(strings.Fields(strings.Join([]string{l.Upstream + l.Server, l.Group, l.Method, l.Name, l.Decision, l.Outcome}, " ")), " "))
		}
	}
	return lines
}

// Of a request through a group there is one line in each log: of the member that has served it,
// by its own names, with the group's; and of the group, if no member has served it or it is a list
// of all. Metrics have it for both.
func TestG03LogsHaveGroupMemberAndOwnName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	log, err := audit.Open(audit.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	var logs bridgetest.Log
	counts, seen := &servedBy{}, &observed{}
	r := newGroupRig(t, func(o *Options) {
		o.Logger, o.Metrics, o.Audit, o.Observers = slog.New(slog.NewJSONHandler(&logs, nil)), counts, log, trace.New(seen)
		for i := range o.Servers {
			o.Servers[i].Access.Audit = log
		}
		o.Servers[0].Access.Policy = policy.New(true, []policy.Rule{{Deny: true, Tools: []string{"secret"}}})
		o.Servers[2].Access.Policy = policy.New(true, []policy.Rule{{Deny: true, Tools: []string{"new__*"}}})
	})
	same := func(era spec.Era, what string, got, want []string) {
		t.Helper()
		slices.Sort(got) // they are written after the response
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%v: %s\n%s\nwant\n%s", era, what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for i, era := range bothEras {
		v := r.visit(t, era, "all")
		r.eventually(t, "it was let in", func() bool { return len(counts.take()) == 0 })
		seen.take()
		begun := logs.String()
		v.ask(spec.MethodToolsList, "", "")
		v.call("old__a", "")
		v.call("old__secret", "")
		v.call("new__x", "")
		v.call("none", "")
		want := []string{"all tools/list ok", "old all tools/call a ok", "old all tools/call secret refused", "all tools/call new__x refused", "all tools/call none error"}
		var told []string
		r.eventually(t, "all have ended", func() bool { told = append(told, seen.take()...); return len(told) >= len(want) })
		same(era, "observers were told", told, want)
		r.eventually(t, "all are logged", func() bool { return len(groupLines(t, strings.TrimPrefix(logs.String(), begun))) >= len(want) })
		same(era, "the log has", groupLines(t, strings.TrimPrefix(logs.String(), begun)), want)
		audited := []string{"all tools/list allow ok", "old all tools/call a allow ok", "old all tools/call secret deny refused", "all tools/call new__x deny refused", "all tools/call none allow error"}
		var lines []string
		r.eventually(t, "the audit log is written", func() bool {
			text, _ := os.ReadFile(path)
			lines = slices.DeleteFunc(groupLines(t, string(text)), func(l string) bool { return !strings.Contains(l, " tools/") })
			return len(lines) >= len(audited)*(i+1)
		})
		same(era, "the audit log has", lines[len(audited)*i:], audited)
		same(era, "counted", counts.take(), []string{
			"all tools/call error", "all tools/call ok", "all tools/call refused", "all tools/call refused", "all tools/list ok",
			"new tools/list ok all", "old tools/call ok all", "old tools/call refused all", "old tools/list ok all",
		})
	}
}
