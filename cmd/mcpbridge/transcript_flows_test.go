package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A flow is what a client does, in the words of its era.
type flow struct {
	name, intro    string
	config         string // of all servers
	detects        bool   // the server's era is not configured
	legacy, modern func(*transcriptRig)
	cells          func() []cell
}

var flows = []flow{
	{"handshake", "A client learns what the server is and what it has, and what nobody has.", "", true, handshakeLegacy, handshakeModern, everywhere},
	{"call", "Calls of tools, with progress and without, that succeed and that fail.", "", false, callTools, callTools, everywhere},
	{"input", "A call for which the server needs input: twice, two things at first.", "", false, inputLegacy, inputModern, viaHTTPAndStdio},
	{"listen", "A client follows two resources, one of which is refused, and a list; the server's stream breaks off in between, and that of a session, too.", "keep_alive: 10m\n", false, listenLegacy, listenModern, viaHTTPAlone},
	{"cancel", "A client takes a call back, and another is never answered.", "keep_alive: 17m\n", false, cancelCalls, cancelCalls, viaHTTPAndStdio},
	{"drain", "The program is told to end while a call runs that ends in time, and while changes are followed.", "", false, drainLegacy, drainModern, viaHTTPAndStdio},
	{"cutoff", "The program is told to end while a call runs that doesn't end.", "", false, cutoff, cutoff, viaHTTPAlone},
}

func viaHTTPAlone() []cell { return pairs(viaHTTP, viaHTTP) }

func viaHTTPAndStdio() []cell { return append(viaHTTPAlone(), pairs(viaStdio, viaStdio)...) }

// everywhere is all transports; of HTTP+SSE there are no modern clients and servers.
func everywhere() []cell {
	over := func(modern bool, over string) side { return side{modern, over} }
	return append(viaHTTPAndStdio(),
		cell{over(false, viaSSE), over(false, viaHTTP)},
		cell{over(false, viaSSE), over(true, viaHTTP)},
		cell{over(false, viaHTTP), over(false, viaSSE)},
		cell{over(true, viaHTTP), over(false, viaSSE)})
}

func handshakeLegacy(r *transcriptRig) {
	c := r.client
	r.pass(time.Second)
	c.open()
	c.do("tools/list", "")
	c.do("ping", "")
	c.do("bogus/method", "")
	c.leave()
	if c.over == viaHTTP {
		c.do("tools/list", "")
	}
}

func handshakeModern(r *transcriptRig) {
	c := r.client
	r.pass(time.Second)
	c.do("server/discover", "")
	c.do("tools/list", "")
	c.do("ping", "")
	c.do("bogus/method", "")
}

// begin opens a session where there is one to open.
func (r *transcriptRig) begin() {
	r.pass(time.Second)
	if !r.client.modern {
		r.client.open()
	}
}

func callTools(r *transcriptRig) {
	r.begin()
	c := r.client
	c.do("tools/call", `"name":"echo","arguments":{"n":1.0}`)
	c.request("tools/call", `"progressToken":"token-1"`, `"name":"work","arguments":{}`).wait()
	r.pass(100 * time.Millisecond)
	c.do("tools/call", `"name":"fail"`)
	c.do("tools/call", `"name":"unknown"`)
	c.do("tools/call", `"name":"late"`)
}

func inputLegacy(r *transcriptRig) {
	r.begin()
	c := r.client
	k := c.request("tools/call", "", `"name":"ask"`)
	for range 3 {
		q := c.question()
		r.pass(100 * time.Millisecond)
		c.reply(q, inputs(q.Method))
	}
	k.wait()
	r.pass(100 * time.Millisecond)
}

// inputs is what a client answers to a question.
func inputs(method string) string {
	if method == "roots/list" {
		return `{"roots":[{"uri":"file:///home/ada"}]}`
	}
	return `{"action":"accept","content":{"name":"Ada","age":36}}`
}

func inputModern(r *transcriptRig) {
	r.begin()
	f := r.client.do("tools/call", `"name":"ask"`)
	for len(f.Result.InputRequests) > 0 {
		var answers []string
		for _, key := range slices.Sorted(maps.Keys(f.Result.InputRequests)) {
			answers = append(answers, fmt.Sprintf("%q:%s", key, inputs(parseFrame(f.Result.InputRequests[key]).Method)))
		}
		f = r.client.do("tools/call", fmt.Sprintf(`"name":"ask","inputResponses":{%s},"requestState":%q`, strings.Join(answers, ","), f.Result.RequestState))
	}
}

func listenLegacy(r *transcriptRig) {
	r.begin()
	c := r.client
	for _, uri := range []string{"note://a", "note://refused"} {
		c.do("resources/subscribe", fmt.Sprintf(`"uri":%q`, uri))
		r.merge(time.Second, 3*time.Second)
		r.pass(10 * time.Second)
	}
	r.changes()
	c.stream()
	r.pass(100 * time.Millisecond)
	r.server.change("note://a")
	r.pass(100 * time.Millisecond)
	c.openStream()
	c.do("resources/unsubscribe", `"uri":"note://a"`)
	r.merge(3*time.Second, 10*time.Second)
	r.pass(5 * time.Second)
	c.leave()
}

// listenModern follows one resource after the other: in which order those of one stream are
// subscribed to is random.
func listenModern(r *transcriptRig) {
	r.begin()
	first := r.client.request("subscriptions/listen", "", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://a"]}`)
	r.pass(10 * time.Second)
	second := r.client.request("subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["note://a","note://refused"]}`)
	r.pass(100 * time.Millisecond)
	r.merge(time.Second, 3*time.Second)
	r.pass(10 * time.Second)
	r.changes()
	first.cancel()
	r.merge(3*time.Second, 10*time.Second)
	r.pass(10 * time.Second)
	second.cancel()
	r.pass(10 * time.Second)
}

// changes has the server tell of changes, before and after its stream broke off.
func (r *transcriptRig) changes() {
	r.server.change("note://a")
	r.pass(100 * time.Millisecond)
	r.server.change("note://b")
	r.server.changeList()
	r.pass(100 * time.Millisecond)
	r.server.expectListener()
	r.rec.RandomWait(time.Millisecond, 2*time.Second)
	r.server.cut()
	r.server.awaitListener()
	r.pass(500 * time.Millisecond)
	r.server.change("note://a")
	r.pass(100 * time.Millisecond)
}

// merge waits, for at least least and at most most, until what a modern server is listened
// to by is one stream again, which a change of what a legacy client follows leads to. The
// wait is random, so that nothing may happen meanwhile.
func (r *transcriptRig) merge(least, most time.Duration) {
	if !r.cell.server.modern {
		return
	}
	r.server.expectListener()
	r.rec.RandomWait(least, most)
	r.server.awaitListener()
}

func cancelCalls(r *transcriptRig) {
	r.begin()
	c := r.client
	k := c.request("tools/call", "", `"name":"hang"`)
	r.pass(1500 * time.Millisecond)
	k.cancel()
	r.pass(1500 * time.Millisecond)
	c.request("tools/call", "", `"name":"hang"`).wait()
	r.pass(1500 * time.Millisecond)
}

func drainLegacy(r *transcriptRig) {
	r.begin()
	if r.follows() {
		r.client.do("resources/subscribe", `"uri":"note://a"`)
		r.merge(time.Second, 3*time.Second)
	}
	r.drain()
}

func drainModern(r *transcriptRig) {
	r.begin()
	if r.follows() {
		r.client.request("subscriptions/listen", "", `"notifications":{"resourceSubscriptions":["note://a"]}`)
	}
	r.drain()
}

// follows reports whether the client can follow changes in a flow that ends the program:
// on a connection it is random what of their end is said before the connection's.
func (r *transcriptRig) follows() bool { return r.cell.server.over == viaHTTP }

// drain ends the program during a call that ends in time. How soon after that it sees so
// is random where net/http waits for requests.
func (r *transcriptRig) drain() {
	r.pass(1500 * time.Millisecond)
	k := r.client.request("tools/call", "", `"name":"slow"`)
	r.pass(2200 * time.Millisecond)
	go func() { // ends with the call
		if k.wait(); r.cell.client.over != viaStdio {
			r.rec.RandomWait(time.Nanosecond, 600*time.Millisecond)
		}
	}()
	r.stop()
	r.pass(100 * time.Millisecond)
}

func cutoff(r *transcriptRig) {
	r.begin()
	r.client.request("tools/call", "", `"name":"hang"`)
	r.pass(1500 * time.Millisecond)
	r.stop()
	r.pass(100 * time.Millisecond)
}
