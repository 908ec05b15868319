package router

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// Each limit that is hit is an error that names its key, a count and a line in the log.
// Those of the lengths of parts, of requests in flight, of memory and of sessions upstream
// are with what they bound.
func TestEachLimitIsToldOfThreeTimes(t *testing.T) {
	t.Parallel()
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"}}
	call := modernBody("1", "tools/call", `"name":"a","arguments":{"text":"`+strings.Repeat("x", 2000)+`"}`)
	deep := modernBody("1", "tools/call", `"name":"a","arguments":`+strings.Repeat(`{"a":`, 50)+`1`+strings.Repeat("}", 50))
	topics := modernBody("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["u:a","u:b"]}`)
	socket := func(t *testing.T, r *rig) string {
		defer r.open(t, http.MethodGet, "", upgrade).Body.Close()
		return r.send(t, http.MethodGet, "", upgrade).body
	}
	session := func(t *testing.T, r *rig) string {
		get := legacyHeaders(r.send(t, http.MethodPost, hello, legacyHeaders("")).header.Get("Mcp-Session-Id"))
		get.Set("Accept", "text/event-stream")
		defer r.open(t, http.MethodGet, "", get).Body.Close()
		return r.send(t, http.MethodPost, hello, legacyHeaders("")).body
	}
	asks := func(t *testing.T, r *rig) string {
		r.peer.mu.Lock()
		r.peer.handle["tools/call"] = func(c *peerCall) string {
			return `{"content":[{"type":"text","text":"` + strings.ReplaceAll(c.ask("elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`), `"`, "'") + `"}]}`
		}
		r.peer.mu.Unlock()
		r.tool(t, "1", allQuestions, "")
		return r.tool(t, "2", allQuestions, "").body
	}
	for _, tt := range []struct {
		limit  string
		change func(*Options)
		hit    func(*testing.T, *rig) string
	}{
		{"body", func(o *Options) { o.bound("body", 1000) }, func(t *testing.T, r *rig) string {
			return r.send(t, http.MethodPost, call, modernHeaders("tools/call", "a")).body
		}},
		{"depth", func(o *Options) { o.bound("depth", 20) }, func(t *testing.T, r *rig) string {
			return r.send(t, http.MethodPost, deep, modernHeaders("tools/call", "a")).body
		}},
		{"listen_topics", func(o *Options) { o.bound("listen_topics", 1) }, func(t *testing.T, r *rig) string {
			return r.send(t, http.MethodPost, topics, modernHeaders("subscriptions/listen", "")).body
		}},
		{"streams", func(o *Options) { o.bound("streams", 1) }, func(t *testing.T, r *rig) string {
			one := strings.Replace(topics, `,"u:b"`, "", 1)
			r.listen(t, "7", `{"resourceSubscriptions":["u:a"]}`).next() // its acknowledgment
			return r.send(t, http.MethodPost, one, modernHeaders("subscriptions/listen", "")).body
		}},
		{"websockets", func(o *Options) { o.bound("websockets", 1) }, socket},
		{"websockets_each", func(o *Options) { o.bound("websockets_each", 1) }, socket},
		{"client_sessions", func(o *Options) { o.bound("client_sessions", 1) }, session},
		{"client_sessions_each", func(o *Options) { o.bound("client_sessions_each", 1) }, session},
		{"parked", func(o *Options) { o.bound("parked", 1) }, asks},
		{"parked_each", func(o *Options) { o.bound("parked_each", 1) }, asks},
		{"upstream_message", nil, func(t *testing.T, r *rig) string {
			r.peer.answer("tools/call", `{"content":[{"type":"text","text":"`+strings.Repeat("x", 9000)+`"}]}`)
			return r.send(t, http.MethodPost, call, modernHeaders("tools/call", "a")).body
		}},
	} {
		t.Run(tt.limit, func(t *testing.T) {
			hits := &tally{}
			var p *scriptedPeer
			r := newRig(t, func(o *Options) {
				p = newPeer(t)
				o.Metrics = hits
				o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
					return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", URL: p.URL, Changes: c, Logger: o.Logger, MaxMessage: 4000,
						ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`), Metrics: upstreamTally{hits}}})
				}
				if tt.change != nil {
					tt.change(o)
				}
			})
			r.peer = p
			got := tt.hit(t, r)
			if !strings.Contains(got, "limits."+tt.limit) || strings.Contains(got, "limits."+tt.limit+"_") {
				t.Errorf("the client got %.600s, want an error that names limits.%s", got, tt.limit)
			}
			if hits.limits(tt.limit) != 1 {
				t.Errorf("%d hits of %s, want one (%v)", hits.limits(tt.limit), tt.limit, hits.hits.n)
			}
			r.eventually(t, "the log has a line about it", func() bool { return strings.Contains(fmt.Sprint(r.logs), "level=WARN") })
		})
	}
}

// What clients may cause any number of times fills no log (CWE-779).
func TestLimitsAreGatheredInTheLog(t *testing.T) {
	t.Parallel()
	const times = 30
	call := modernBody("1", "tools/call", `"name":"a","arguments":{"text":"`+strings.Repeat("x", 2000)+`"}`)
	deep := modernBody("1", "tools/call", `"name":"a","arguments":`+strings.Repeat(`{"a":`, 50)+`1`+strings.Repeat("}", 50))
	topics := modernBody("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["u:a","u:b"]}`)
	long := modernBody(`"`+strings.Repeat("i", 100)+`"`, "tools/list", "")
	post := func(method, body string) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			for range times {
				r.send(t, http.MethodPost, body, modernHeaders(method, ""))
			}
		}
	}
	sockets := func(text string) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			for range times {
				l := r.socket(t)
				l.send(text)
				l.next() // the error
				_ = l.conn.Close()
			}
		}
	}
	for _, tt := range []struct {
		name, limit string
		change      func(*Options)
		hit         func(*testing.T, *rig)
	}{
		{"body", "body", func(o *Options) { o.bound("body", 1000) }, post("tools/call", call)},
		{"depth", "depth", func(o *Options) { o.bound("depth", 20) }, post("tools/call", deep)},
		{"topics", "listen_topics", func(o *Options) { o.bound("listen_topics", 1) }, post("subscriptions/listen", topics)},
		{"id", "id", func(o *Options) { o.bound("id", 50) }, post("tools/list", long)},
		{"memory", "memory", func(o *Options) { o.bound("memory", 1000) }, post("tools/call", call)},
		{"sessions", "client_sessions", func(o *Options) { o.bound("client_sessions", 1) }, func(t *testing.T, r *rig) {
			get := legacyHeaders(r.send(t, http.MethodPost, hello, legacyHeaders("")).header.Get("Mcp-Session-Id"))
			get.Set("Accept", "text/event-stream")
			defer r.open(t, http.MethodGet, "", get).Body.Close()
			for range times {
				r.send(t, http.MethodPost, hello, legacyHeaders(""))
			}
		}},
		{"body of a WebSocket", "body", func(o *Options) { o.bound("body", 1000) }, sockets(call)},
		{"depth of a WebSocket", "depth", func(o *Options) { o.bound("depth", 20) }, sockets(deep)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hits := &tally{}
			r := newRig(t, func(o *Options) { o.Metrics = hits; tt.change(o) })
			begin := time.Now()
			tt.hit(t, r)
			r.eventually(t, "all are counted", func() bool { return hits.limits(tt.limit) == times })
			most := 1 + int(time.Since(begin)/(10*time.Second)) // on a busy machine
			if n := strings.Count(fmt.Sprint(r.logs), "level=WARN"); n < 1 || n > most {
				t.Errorf("%d times the limit %s has %d lines in the log, want one in ten seconds:\n%.2000s", times, tt.limit, n, r.logs)
			}
		})
	}
}

// upstreamTally is a tally for a back.
type upstreamTally struct{ *tally }

func (upstreamTally) SessionOpened(string)        {}
func (upstreamTally) SessionEnded(string, string) {}
