package console

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Everything that a gateway holds has its table, with what clients and servers say on one line.
func TestText(t *testing.T) {
	at := time.Date(2026, time.July, 28, 12, 0, 0, 0, time.UTC)
	s := &State{Version: "v1.0.0", Started: at.Add(-90 * time.Minute), Snapshot: status.Snapshot{
		Time: at, Draining: true,
		Counts: status.Counts{Requests: 1, Streams: 2, Sessions: 3, Sockets: 4, Topics: 5, Pairs: 6, Questions: 7},
		Servers: []status.Server{
			{Name: "docs", State: "ready", Topics: 2, Followers: 3, Questions: 1, Upstream: status.Upstream{Era: "legacy", Sessions: 4, Processes: []status.Process{{PID: 1, Memory: 3 << 20}, {PID: 2, Memory: 1 << 19}}, ProcessesLeft: 5}},
			{Name: "files", State: "down", Error: "it ended\n\x1b[2J", Upstream: status.Upstream{Era: "unknown"}},
		},
		Clients: status.Clients{List: []status.Client{{Server: "docs", Era: "modern", Name: "ide\t1\x1b[2J", Principal: "ada", Streams: 1, Topics: 2, InFlight: 3}}},
		Follows: status.Follows{Topics: []status.Topic{{Server: "docs", Kind: "toolsListChanged", Followers: 2}, {Server: "docs", Kind: "resourceUpdated", URI: "note://todo", Followers: 1}}},
		Questions: status.Questions{List: []status.Question{
			{Server: "docs", Method: "elicitation/create", During: "tools/call", Name: "search", Client: "ide", Since: at.Add(-61500 * time.Millisecond)},
		}},
	}}
	const want = `mcpbridge v1.0.0, up 1h30m0s; 4.5 calls/s, 1 requests in flight, 2 streams, 3 sessions, 4 WebSockets, 6 subscriptions to 5 topics, 7 questions
It is ending.

SERVER  STATE  ERA      CALLS/S  SESSIONS  TOPICS  FOLLOWERS  QUESTIONS  PROCESSES   ERROR
docs    ready  legacy   4.5      4         2       3          1          7, 3.5 MiB  -
files   down   unknown  0.0      0         0       0          0          -           it ended\x0a\x1b[2J

CLIENT           ERA     SERVER  PRINCIPAL  SESSION  STREAMS  TOPICS  IN FLIGHT
ide\x091\x1b[2J  modern  docs    ada        -        1        2       3

TOPIC             SERVER  FOLLOWERS
toolsListChanged  docs    2
note://todo       docs    1

QUESTION            SERVER  DURING             CLIENT  WAITS
elicitation/create  docs    tools/call search  ide     1m2s
`
	if got := laidOut(t, Text(s, Rates{"docs": 4.5})); got != want {
		t.Errorf("Text is\n%s\nwant\n%s", got, want)
	}
}

// laidOut returns a text with its columns, as it is printed once.
func laidOut(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	table := output.NewTable(&out, false)
	if _, err := output.Printf(table, "%s", output.Block(text)); err != nil {
		t.Fatal(err)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What has no place is counted, with what the gateway itself has left out; what there is none of has
// no table.
func TestTextIsBounded(t *testing.T) {
	s := &State{Version: "v1", Snapshot: status.Snapshot{
		Clients: status.Clients{Left: 100},
		Follows: status.Follows{TopicsLeft: 1000},
	}}
	for i := range mostClients + 3 {
		s.Clients.List = append(s.Clients.List, status.Client{Name: fmt.Sprintf("client-%d", i)})
	}
	for i := range mostTopics + 1 {
		s.Follows.Topics = append(s.Follows.Topics, status.Topic{URI: fmt.Sprintf("note://%d", i)})
	}
	text := Text(s, nil)
	if strings.Count(text, "\nclient-") != mostClients || strings.Count(text, "\nnote://") != mostTopics {
		t.Errorf("it has %d clients and %d topics, want %d and %d", strings.Count(text, "\nclient-"), strings.Count(text, "\nnote://"), mostClients, mostTopics)
	}
	for _, want := range []string{"\nand 103 more clients\n", "\nand 1001 more topics\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("Text is\n%s\nwant %q in it", text, want)
		}
	}
	for _, not := range []string{"SERVER\tSTATE", "QUESTION", "calls/s", "ending"} {
		if strings.Contains(text, not) {
			t.Errorf("Text is\n%s\nwant no %s", text, not)
		}
	}
}

// Who answers otherwise than the admin address of mcpbridge is told of by what it most likely is.
func TestAdminRefusals(t *testing.T) {
	for _, tt := range []struct {
		code       int
		text, want string
	}{
		{404, "404 page not found", "URL has no admin page; is it the admin address of mcpbridge, or of an earlier version?"},
		{503, " busy\n", "mcpbridge at URL answers 503 Service Unavailable: busy"},
		{200, "<html>", "URL does not answer as mcpbridge does: invalid character '<' looking for beginning of value"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.code)
			_, _ = w.Write([]byte(tt.text))
		}))
		defer s.Close()
		a := &Admin{Address: Address{URL: s.URL}}
		_, err := a.State(t.Context())
		if want := strings.ReplaceAll(tt.want, "URL", s.URL); err == nil || err.Error() != want {
			t.Errorf("State = %v, want %s", err, want)
		}
		if link, failed := a.Link(t.Context()); failed == nil || failed.Error() != err.Error() {
			t.Errorf("Link = %+v, %v, want %v", link, failed, err)
		}
	}
	const nobody = "http://127.0.0.1:1"
	a := &Admin{Address: Address{URL: nobody}}
	const step = "connection refused; is it running? name its admin address with --admin"
	if err := a.Once(t.Context(), new(bytes.Buffer), false); err == nil || !strings.HasPrefix(err.Error(), "mcpbridge does not answer at "+nobody+": ") || !strings.HasSuffix(err.Error(), step) {
		t.Errorf("Once = %v, want %s", err, step)
	}
	if err := a.Tail(t.Context(), new(bytes.Buffer), TailOptions{}); err == nil || !strings.HasSuffix(err.Error(), step) {
		t.Errorf("Tail = %v, want %s", err, step)
	}
	if err := a.Top(t.Context(), new(bytes.Buffer), time.Hour, false); err == nil || !strings.HasSuffix(err.Error(), step) {
		t.Errorf("Top = %v, want %s", err, step)
	}
}
