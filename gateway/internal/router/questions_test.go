package router

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const allQuestions = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

// askableBody is a call whose client declares capabilities.
func askableBody(id, method, capabilities, rest string) string {
	return strings.Replace(modernBody(id, method, rest), `"io.modelcontextprotocol/clientCapabilities":{}`,
		`"io.modelcontextprotocol/clientCapabilities":`+capabilities, 1)
}

// tool calls the tool "a" as a client with capabilities. more are further params.
func (r *rig) tool(t *testing.T, id, capabilities, more string) answer {
	t.Helper()
	return r.send(t, http.MethodPost, askableBody(id, "tools/call", capabilities, `"name":"a","arguments":{"n":1}`+more), modernHeaders("tools/call", "a"))
}

// A round is an input_required result.
type round struct {
	Type     string `json:"resultType"`
	Requests map[string]struct {
		Method string
		Params json.RawMessage
	} `json:"inputRequests"`
	State string `json:"requestState"`
}

func (a answer) round(t *testing.T) round {
	t.Helper()
	var r round
	if err := json.Unmarshal(a.result(t), &r); err != nil || r.Type != "input_required" || r.State == "" || len(r.Requests) == 0 {
		t.Fatalf("answer = %d %s, want input_required with requests and a state", a.status, a.body)
	}
	return r
}

// key returns the key of the first question of a method.
func (r round) key(method string) string {
	for k, q := range r.Requests {
		if q.Method == method {
			return k
		}
	}
	return ""
}

// retry returns the params that answer a round with one text for each method.
func (r round) retry(answers map[string]string) string {
	var parts []string
	for k, q := range r.Requests {
		if a := answers[q.Method]; a != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", k, a))
		}
	}
	return fmt.Sprintf(`,"inputResponses":{%s},"requestState":%q`, strings.Join(parts, ","), r.State)
}

const (
	accept  = `{"action":"accept","content":{"name":"Ada"}}`
	sampled = `{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}`
	someDir = `{"roots":[{"uri":"file:///x"}]}`
)

// say returns a tool's result with a text.
func say(text string) string {
	return `{"content":[{"type":"text","text":` + string(wire.Quote(text)) + `}]}`
}

func TestM2L16QuestionsEndTheResponse(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		var wg sync.WaitGroup
		var a, b string
		wg.Go(func() {
			a = c.ask("elicitation/create", `{"message":"name?","requestedSchema":{"type":"object","properties":{}},"elicitationId":"e","task":{"ttl":1},"_meta":{"progressToken":3,"k":1}}`)
		})
		wg.Go(func() {
			b = c.ask("sampling/createMessage", `{"messages":[],"maxTokens":1,"includeContext":"thisServer","_meta":{"progressToken":4}}`)
		})
		wg.Wait()
		return say(a + b)
	}
	first := r.tool(t, "1", allQuestions, "")
	rd, calls := first.round(t), 1
	for ; len(rd.Requests) != 2 && calls < 20; calls++ { // on a busy machine one comes too late for the round of the other
		first = r.tool(t, "1", allQuestions, "")
		rd = first.round(t)
	}
	if len(rd.Requests) != 2 {
		t.Fatalf("round = %s, want both questions, which came together", first.body)
	}
	if got := string(rd.Requests[rd.key("elicitation/create")].Params); got != `{"message":"name?","requestedSchema":{"type":"object","properties":{}},"_meta":{"k":1}}` {
		t.Errorf("elicitation params = %s", got)
	}
	if got := string(rd.Requests[rd.key("sampling/createMessage")].Params); got != `{"messages":[],"maxTokens":1}` {
		t.Errorf("sampling params = %s", got)
	}
	if !strings.Contains(first.body, serverInfo) {
		t.Errorf("body = %s, want serverInfo", first.body)
	}
	got := r.tool(t, `"second"`, allQuestions, rd.retry(map[string]string{"elicitation/create": accept, "sampling/createMessage": sampled}))
	if !strings.HasPrefix(got.body, `{"jsonrpc":"2.0","id":"second"`) || !strings.Contains(got.body, string(wire.Quote(accept + sampled))[1:20]) {
		t.Errorf("retry = %s, want the answers under the retry's id", got.body)
	}
	if n := len(r.peer.sent("tools/call")); n != calls {
		t.Errorf("the call was sent %d times, want %d", n, calls)
	}
}

func TestM2L17RetriesResume(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	finish := make(chan struct{})
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		a := c.ask("elicitation/create", `{"message":"1"}`)
		b := c.ask("roots/list", `{}`)
		if token := wire.Get(wire.Get(c.m.Params, "_meta"), "progressToken"); token != nil {
			c.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + string(token) + `}}`)
		}
		<-finish
		return say(a + b)
	}
	close(finish)
	rd := r.tool(t, "1", allQuestions, "").round(t)
	t.Run("M2L-17 a missing answer is asked for again", func(t *testing.T) {
		rd = r.tool(t, "2", allQuestions, rd.retry(nil)).round(t)
		if rd.key("elicitation/create") == "" {
			t.Errorf("round = %v, want the question again", rd)
		}
	})
	t.Run("M2L-17 a malformed answer is asked for again", func(t *testing.T) {
		rd = r.tool(t, "3", allQuestions, rd.retry(map[string]string{"elicitation/create": `{"action":"maybe"}`})).round(t)
	})
	t.Run("M2L-17 an unknown key is ignored and the call may ask again", func(t *testing.T) {
		with := strings.Replace(rd.retry(map[string]string{"elicitation/create": accept}), `"inputResponses":{`, `"inputResponses":{"nobody":{"x":1},`, 1)
		rd = r.tool(t, "4", allQuestions, with).round(t)
		if rd.key("roots/list") == "" {
			t.Fatalf("round = %v, want roots/list", rd)
		}
	})
	got := r.tool(t, "5", allQuestions, rd.retry(map[string]string{"roots/list": someDir}))
	if !strings.Contains(got.body, `Ada`) || !strings.Contains(got.body, "file:///x") || !strings.Contains(got.body, `"id":5,`) {
		t.Errorf("result = %s", got.body)
	}
}

func TestM2L17ProgressFlowsOnTheRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		a := c.ask("elicitation/create", `{"message":"1"}`)
		token := wire.Get(wire.Get(c.m.Params, "_meta"), "progressToken")
		c.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + string(token) + `}}`)
		return say(a)
	}
	withToken := func(token, more string) answer {
		body := askableBody("1", "tools/call", allQuestions, `"name":"a"`+more)
		return r.send(t, http.MethodPost, strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":`+token+`,`, 1), modernHeaders("tools/call", "a"))
	}
	rd := withToken(`"one"`, "").round(t)
	got := withToken(`"two"`, rd.retry(map[string]string{"elicitation/create": accept}))
	if !strings.Contains(got.body, `"progressToken":"two"`) || strings.Contains(got.body, `"one"`) {
		t.Errorf("retry = %s, want progress under the retry's token", got.body)
	}
}

// What a server says while its call is parked waits for the retry, in order, and comes
// before what it says then.
func TestM2L17NotesWaitForTheRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	said := make(chan struct{})
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		token := string(wire.Get(wire.Get(c.m.Params, "_meta"), "progressToken"))
		progress := func(from, to int) {
			for n := from; n <= to; n++ {
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s}}`, n, token))
			}
		}
		asked := make(chan string)
		go func() { asked <- c.ask("elicitation/create", `{"message":"1"}`) }()
		<-said // the client has the question
		progress(1, 3)
		c.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"meanwhile"}}`)
		c.ask("ping", `{}`) // answered, it shows that what came before has been taken in
		said <- struct{}{}
		a := <-asked
		progress(4, 5)
		return say(a)
	}
	call := func(token, more string) answer {
		body := askableBody("1", "tools/call", allQuestions, `"name":"a"`+more)
		meta := `"_meta":{"io.modelcontextprotocol/logLevel":"info","progressToken":` + token + `,`
		return r.send(t, http.MethodPost, strings.Replace(body, `"_meta":{`, meta, 1), modernHeaders("tools/call", "a"))
	}
	rd := call(`"one"`, "").round(t)
	said <- struct{}{}
	<-said
	got := call(`"two"`, rd.retry(map[string]string{"elicitation/create": accept}))
	order := regexp.MustCompile(`"progress":\d|meanwhile|"result"`).FindAllString(got.body, -1)
	if want := `"progress":1 "progress":2 "progress":3 meanwhile "progress":4 "progress":5 "result"`; strings.Join(order, " ") != want {
		t.Errorf("the retry had %s, want %s", order, want)
	}
}

func TestM2L18BadStatesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["tools/call"] = func(c *peerCall) string { return say(c.ask("elicitation/create", `{"message":"1"}`)) }
	rd := r.tool(t, "1", allQuestions, "").round(t)
	other := newRig(t, nil)
	other.peer.handle["tools/call"] = r.peer.handle["tools/call"]
	foreign := other.tool(t, "1", allQuestions, "").round(t)
	good := rd.retry(map[string]string{"elicitation/create": accept})
	var texts []string
	for name, more := range map[string]string{
		"forged":     strings.Replace(good, rd.State, rd.State[:len(rd.State)-3]+"AAA", 1),
		"garbage":    strings.Replace(good, rd.State, "hello", 1),
		"no string":  strings.Replace(good, `"`+rd.State+`"`, "7", 1),
		"mismatched": good + `,"extra":1`,
	} {
		got := r.tool(t, "2", allQuestions, more)
		if got.code() != -32602 || got.status != 400 {
			t.Errorf("%s: %d %s, want 400 and -32602", name, got.status, got.body)
		}
		texts = append(texts, got.body)
	}
	for _, text := range texts[1:] {
		if text != texts[0] {
			t.Errorf("two failures read\n%s\n%s, want one text", texts[0], text)
		}
	}
	if got := r.tool(t, "2", allQuestions, strings.Replace(good, rd.State, foreign.State, 1)); got.code() != -32602 || !strings.Contains(got.body, "restarted") {
		t.Errorf("state of another instance: %s", got.body)
	}
	if got := r.tool(t, "3", allQuestions, good); !strings.Contains(got.body, "Ada") {
		t.Errorf("after the bad ones the good state gave %s", got.body)
	}
	if got := r.tool(t, "4", allQuestions, good); got.code() != -32602 {
		t.Errorf("replayed: %s, want -32602", got.body)
	}
}

func TestM2L19ParkedCallsExpire(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Servers[0].Settings.ParkedTTL = 2 * time.Second }) // both questions are asked by then, on a busy machine too
	said := make(chan string, 2)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		go func() { said <- c.ask("sampling/createMessage", `{"messages":[]}`) }()
		said <- c.ask("elicitation/create", `{"message":"1"}`)
		<-c.ctx.Done()
		return say("late")
	}
	rd := r.tool(t, "1", allQuestions, "").round(t)
	heard := <-said + " " + <-said // before the cancellation
	if !strings.Contains(heard, `{"action":"cancel"}`) || !strings.Contains(heard, "error -32603") {
		t.Errorf("the server heard %q, want a cancelled elicitation and an error", heard)
	}
	r.eventually(t, "the call is cancelled upstream", func() bool { return len(r.peer.sent("notifications/cancelled")) == 1 })
	if got := r.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept})); got.code() != -32602 {
		t.Errorf("retry after expiry: %s, want -32602", got.body)
	}
}

func TestM2L19ParkedCallsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.bound("parked", 1) })
	r.peer.handle["tools/call"] = func(c *peerCall) string { return say(c.ask("elicitation/create", `{"message":"1"}`)) }
	rd := r.tool(t, "1", allQuestions, "").round(t)
	if got := r.tool(t, "2", allQuestions, ""); !strings.Contains(got.body, "limits.parked") {
		t.Errorf("over the limit: %s, want the server to hear of it", got.body)
	}
	if got := r.tool(t, "3", allQuestions, rd.retry(map[string]string{"elicitation/create": accept})); !strings.Contains(got.body, "Ada") {
		t.Errorf("the parked one: %s", got.body)
	}
	if got := r.tool(t, "4", allQuestions, ""); got.status != 200 {
		t.Errorf("after it: %s", got.body)
	} else {
		got.round(t)
	}
}

func TestM2L19WithdrawnQuestionsLeaveTheRound(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Servers[0].Settings.Gather = time.Second })
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		c.send(`{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"withdrawn"}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":900}}`)
		return say(c.ask("elicitation/create", `{"message":"kept"}`))
	}
	got := r.tool(t, "1", allQuestions, "")
	if rd := got.round(t); len(rd.Requests) != 1 || strings.Contains(got.body, "withdrawn") {
		t.Errorf("round = %s, want the kept question alone", got.body)
	}
}

func TestM2L20AttributionIsByStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		who := string(wire.Get(wire.Get(c.m.Params, "arguments"), "who"))
		return say(c.ask("elicitation/create", `{"message":`+who+`}`))
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			rest := fmt.Sprintf(`"name":"a","arguments":{"who":"caller-%d"}`, i)
			send := func(more string) answer {
				return r.send(t, http.MethodPost, askableBody("1", "tools/call", allQuestions, rest+more), modernHeaders("tools/call", "a"))
			}
			got := send("")
			rd := got.round(t)
			if len(rd.Requests) != 1 || !strings.Contains(got.body, fmt.Sprintf(`"caller-%d"`, i)) {
				t.Errorf("caller %d was asked %s", i, got.body)
			}
			end := send(rd.retry(map[string]string{"elicitation/create": fmt.Sprintf(`{"action":"accept","content":{"me":"caller-%d"}}`, i)}))
			if !strings.Contains(end.body, fmt.Sprintf(`caller-%d\`, i)) {
				t.Errorf("caller %d got %s", i, end.body)
			}
		})
	}
	wg.Wait()
}

func TestM2L20QuestionsOnTheGetStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		return say(c.p.ask(c.ctx, c.p.push, "elicitation/create", `{"message":"elsewhere"}`))
	}
	for i := range 3 { // the first by luck, the others by their lanes
		rd := r.tool(t, "1", allQuestions, "").round(t)
		if got := r.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": accept})); !strings.Contains(got.body, "Ada") {
			t.Errorf("call %d: %s", i, got.body)
		}
	}
}

func TestM2L21UndeclaredCapabilities(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, capabilities, method, params, need string }{
		{"no elicitation", `{}`, "elicitation/create", `{"message":"m"}`, `{"elicitation":{"form":{}}}`},
		{"url on a bare client", `{"elicitation":{}}`, "elicitation/create", `{"mode":"url","message":"m","url":"https://x"}`, `{"elicitation":{"url":{}}}`},
		{"form on a url client", `{"elicitation":{"url":{}}}`, "elicitation/create", `{"message":"m"}`, `{"elicitation":{"form":{}}}`},
		{"no sampling", `{"roots":{}}`, "sampling/createMessage", `{"messages":[]}`, `{"sampling":{}}`},
		{"sampling without tools", `{"sampling":{}}`, "sampling/createMessage", `{"messages":[],"tools":[]}`, `{"sampling":{"tools":{}}}`},
	} {
		t.Run("M2L-21 "+tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			heard := ""
			r.peer.handle["tools/call"] = func(c *peerCall) string {
				heard = c.ask(tt.method, tt.params)
				return strings.Replace(say("could not ask"), `{"content"`, `{"isError":true,"content"`, 1)
			}
			got := r.tool(t, "1", tt.capabilities, "")
			if got.status != 400 || got.code() != -32021 || !strings.Contains(got.body, `"requiredCapabilities":`+tt.need) || !strings.Contains(got.body, "could not ask") {
				t.Errorf("%d %s, want 400, -32021 with %s and the server's text", got.status, got.body, tt.need)
			}
			if !strings.HasPrefix(heard, "error ") {
				t.Errorf("the server heard %q, want an error", heard)
			}
			r.peer.handle["tools/call"] = func(c *peerCall) string {
				c.ask(tt.method, tt.params)
				return say("went another way")
			}
			if got := r.tool(t, "1", tt.capabilities, ""); got.status != 200 || !strings.Contains(got.body, "went another way") {
				t.Errorf("a call that succeeds all the same: %d %s", got.status, got.body)
			}
		})
	}
}

func TestM2L22URLElicitationRequired(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var mu sync.Mutex
	visited := false
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		mu.Lock()
		defer mu.Unlock()
		if visited {
			return say("welcome")
		}
		return `{"code":-32042,"message":"log in","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://x/login","message":"please"}]}}`
	}
	first := r.tool(t, "1", allQuestions, "")
	rd := first.round(t)
	if got := string(rd.Requests[rd.key("elicitation/create")].Params); got != `{"url":"https://x/login","message":"please","mode":"url"}` && got != `{"mode":"url","url":"https://x/login","message":"please"}` {
		t.Errorf("params = %s", got)
	}
	done := make(chan answer)
	go func() {
		done <- r.tool(t, "2", allQuestions, rd.retry(map[string]string{"elicitation/create": `{"action":"accept"}`}))
	}()
	select {
	case got := <-done:
		t.Fatalf("answered before the server said that the visit is done: %s", got.body)
	case <-time.After(100 * time.Millisecond):
	}
	mu.Lock()
	visited = true
	mu.Unlock()
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}`)
	if got := <-done; !strings.Contains(got.body, "welcome") {
		t.Errorf("after the visit: %s", got.body)
	}
	mu.Lock()
	visited = false
	mu.Unlock()
	rd = r.tool(t, "3", allQuestions, "").round(t)
	if got := r.tool(t, "4", allQuestions, rd.retry(map[string]string{"elicitation/create": `{"action":"decline"}`})); got.code() != -32603 || !strings.Contains(got.body, "log in") {
		t.Errorf("declined: %s, want a clear error", got.body)
	}
	if got := r.tool(t, "5", `{"elicitation":{}}`, ""); got.status != 400 || got.code() != -32021 {
		t.Errorf("without the capability: %d %s, want 400 and -32021", got.status, got.body)
	}
}

func TestM2L23RootsOutsideACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.call(t, "1", "tools/list", "", "") // no roots declared
	if got := r.peer.ask(t.Context(), r.peer.push, "roots/list", `{}`); got != `{"roots":[]}` {
		t.Errorf("roots outside a call = %s, want an empty list at once", got)
	}
	if got := r.peer.ask(t.Context(), r.peer.push, "elicitation/create", `{"message":"m"}`); !strings.Contains(got, "there is no call that the request could belong to") {
		t.Errorf("elicitation outside a call = %s, want an error that says why", got)
	}
}

func TestM2L23ProvisionalRootsAreRefreshed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	asked := make(chan string, 4)
	r.peer.onInitialized = func(p *scriptedPeer) { asked <- p.ask(context.Background(), p.push, "roots/list", `{}`) }
	r.peer.onRootsChanged = func(p *scriptedPeer) { asked <- p.ask(context.Background(), p.push, "roots/list", `{}`) }
	r.peer.answer("tools/call", say("done"))
	r.send(t, http.MethodPost, askableBody("0", "tools/list", allQuestions, ""), modernHeaders("tools/list", ""))
	if got := <-asked; got != `{"roots":[]}` {
		t.Fatalf("roots at the start = %s, want a provisional empty list", got)
	}
	rd := r.tool(t, "1", allQuestions, "").round(t)
	if rd.key("roots/list") == "" || len(r.peer.sent("tools/call")) != 0 {
		t.Fatalf("round = %v with %d calls sent, want roots/list before the call", rd, len(r.peer.sent("tools/call")))
	}
	if got := r.tool(t, "2", allQuestions, rd.retry(map[string]string{"roots/list": someDir})); !strings.Contains(got.body, "done") {
		t.Errorf("the call = %s", got.body)
	}
	if got := <-asked; got != someDir {
		t.Errorf("roots after the announcement = %s, want %s", got, someDir)
	}
	if got := r.tool(t, "3", allQuestions, ""); !strings.Contains(got.body, "done") {
		t.Errorf("the next call = %s, want no more questions", got.body)
	}
	if got := r.peer.ask(t.Context(), r.peer.push, "roots/list", `{}`); got != `{"roots":[]}` {
		t.Errorf("roots outside a call = %s, want none: the last answer is one client's", got)
	}
}

var stateShape = regexp.MustCompile(`^1\.[A-Z2-7]{8}\.[A-Za-z0-9_-]+$`)

func TestM2L18StateNamesVersionAndInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.handle["tools/call"] = func(c *peerCall) string { return say(c.ask("elicitation/create", `{"message":"1"}`)) }
	if rd := r.tool(t, "1", allQuestions, "").round(t); !stateShape.MatchString(rd.State) {
		t.Errorf("state = %q", rd.State)
	}
}
