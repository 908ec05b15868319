package front

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/moderntest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestPipeAnswersOutOfOrder(t *testing.T) {
	s := moderntest.NewScript()
	release := make(chan struct{})
	quick := s.OnServe
	s.OnServe = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
		if name, _ := wire.GetString(req.Params, "name"); name == "slow" {
			<-release
		}
		return quick(ctx, req, x)
	}
	l := lineOf(t, frontOf(t, s, nil))
	l.Call("1", "slow")
	l.Call(`"1"`, "quick")
	l.Want(`"id":"1",`, "quick", `"resultType":"complete"`)
	close(release)
	l.Want(`"id":1,`, "slow")
}

// What HTTP's headers say twice is checked where it stands once.
func TestPipeChecksTheEnvelope(t *testing.T) {
	s := moderntest.NewScript()
	l := lineOf(t, frontOf(t, s, nil))
	for _, tt := range []struct{ name, text, want string }{
		{"no capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, `"code":-32602`},
		{"a legacy revision", strings.Replace(moderntest.Request("1", "tools/list", "{}", ""), "2026-07-28", "2025-11-25", 1), `"code":-32022`},
		{"no name", moderntest.Request("1", "tools/call", "{}", ""), `"code":-32602`},
		{"a method of before", moderntest.Request("1", "ping", "{}", ""), `"code":-32601`},
		{"discovery", moderntest.Request("1", "server/discover", "{}", ""), `"supportedVersions":["2026-07-28"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.Send(tt.text)
			l.Want(tt.want, `"id":1,`)
		})
	}
}

func TestM2L40StreamsShareAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		l := lineOf(t, frontOf(t, s, nil))
		l.Listen("1")
		number := <-s.Listened
		l.Want("notifications/subscriptions/acknowledged", `"io.modelcontextprotocol/subscriptionId":1}`)
		l.Listen(`"1"`)
		text := <-s.Listened
		l.Want("notifications/subscriptions/acknowledged", `"io.modelcontextprotocol/subscriptionId":"1"}`)
		moderntest.ToolsChanged(number)
		l.Want("notifications/tools/list_changed", `"io.modelcontextprotocol/subscriptionId":1}`)
		moderntest.ToolsChanged(text)
		l.Want("notifications/tools/list_changed", `"io.modelcontextprotocol/subscriptionId":"1"}`)
		l.Call("2", "x") // calls go on beside streams
		l.Want(`"id":2,`)

		l.Cancel(`"1"`)
		synctest.Wait()
		l.Silent()
		moderntest.ToolsChanged(text)
		moderntest.ToolsChanged(number)
		l.Want("notifications/tools/list_changed", `"io.modelcontextprotocol/subscriptionId":1}`)
		synctest.Wait()
		l.Silent()
		l.Cancel("1")
		synctest.Wait()
		l.Silent()
	})
}

// A stream's frames stay behind its acknowledgment, and those of a stream that was
// cancelled do not get into one that has its id after it.
func TestM2L40OrderUnderASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		l := lineOf(t, frontOf(t, s, nil))
		l.Listen("7")
		mail := <-s.Listened
		l.Want("acknowledged")
		release := l.Hold("list_changed")
		moderntest.ToolsChanged(mail)
		synctest.Wait() // its frame waits to be sent
		l.Cancel("7")
		l.Listen("7")
		synctest.Wait()
		l.Silent()
		release()
		mail = <-s.Listened
		moderntest.ToolsChanged(mail)
		l.Want("tools/list_changed") // of the first
		l.Want("acknowledged")
		l.Want("tools/list_changed")
		synctest.Wait()
		l.Silent()
	})
}

func TestM2L38PipeShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		release := make(chan struct{})
		quick := s.OnServe
		s.OnServe = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
			<-release
			return quick(ctx, req, x)
		}
		l := lineOf(t, frontOf(t, s, nil))
		l.Listen(`"s"`)
		moderntest.ToolsChanged(<-s.Listened)
		l.Want("acknowledged")
		l.Want("tools/list_changed")
		l.Call("1", "x")
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- l.Shutdown(t.Context()) }()
		l.Want(`{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete",`, `"io.modelcontextprotocol/subscriptionId":"s"`)
		l.Call("2", "late")
		l.Want(`"id":2,`, `"code":-32603`, "shutting down")
		close(release)
		l.Want(`"id":1,`, `"result"`)
		if err := <-ended; err != nil {
			t.Errorf("Shutdown() = %v", err)
		}
		synctest.Wait()
		l.Silent()
	})
}

func TestF11CancelledRequestsStayUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		causes := make(chan error, 1)
		s.OnServe = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			_ = x.Notify(ctx, mcp.Notification{Method: "notifications/progress", Params: []byte("{}")})
			return nil, context.Cause(ctx)
		}
		l := lineOf(t, frontOf(t, s, nil))
		l.Call("1", "x")
		synctest.Wait()
		l.Cancel(`"1"`) // another's
		synctest.Wait()
		if len(causes) > 0 {
			t.Fatalf("the call ended: %v", <-causes)
		}
		l.Cancel("1")
		if err := <-causes; err != errCancelled {
			t.Errorf("cause = %v, want %v", err, errCancelled)
		}
		synctest.Wait()
		l.Silent()
		l.Cancel("1") // is over
	})
}

// A describer is called when what is known of a server is asked for, as it is when a call parks.
type describer func()

func (d describer) Describe(ctx context.Context, _ *mcp.Request) (*mcp.Description, error) {
	if ctx == mcp.Known {
		d()
	}
	return &mcp.Description{Capabilities: []byte("{}")}, nil
}

// A call that is cancelled while its questions are about to be sent does not wait for answers: its client
// has not read them.
func TestF11CancelledWhileItParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		causes := make(chan error, 1)
		s.OnServe = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
			_, err := x.RequestInput(ctx, []mcp.InputRequest{{Method: "elicitation/create", Params: []byte(`{"message":"?"}`)}})
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, err
		}
		parking, cancelled := make(chan struct{}), make(chan struct{})
		f := frontOf(t, s, func(o *Options) { o.Describer = describer(func() { parking <- struct{}{}; <-cancelled }) })
		l := lineOf(t, f)
		l.Send(moderntest.Request("1", "tools/call", `{"elicitation":{}}`, `,"name":"x"`))
		<-parking
		l.Cancel("1")
		synctest.Wait()
		close(cancelled)
		synctest.Wait()
		l.Silent()
		if len(causes) != 1 {
			t.Error("the call goes on, and nobody can answer")
		}
		f.parked.mu.Lock()
		defer f.parked.mu.Unlock()
		if n := len(f.parked.byID); n != 0 {
			t.Errorf("%d calls are kept", n)
		}
	})
}

// Who closes the pipe ends what it carried; nothing of it is left.
func TestF09ClosedPipeCancels(t *testing.T) {
	s := moderntest.NewScript()
	ended := make(chan struct{})
	s.OnServe = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		defer close(ended)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	l := lineOf(t, frontOf(t, s, nil))
	l.Call("1", "x")
	l.Listen("2")
	<-s.Listened
	l.Close()
	select {
	case <-ended:
	default:
		t.Error("Close returned before the call had ended")
	}
}

func TestPipeBounds(t *testing.T) {
	s := moderntest.NewScript()
	s.OnServe = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	log := &bridgetest.Log{}
	l := lineOf(t, frontOf(t, s, func(o *Options) { o.MaxInFlight, o.Logger = 2, slog.New(slog.NewTextHandler(log, nil)) }))
	l.Call("1", "x")
	l.Call("1", "x")
	l.Want(`"id":1,`, `"code":-32600`, "in flight")
	l.Call("2", "x")
	l.Call("3", "x")
	for range 30 {
		l.Call("3", "x")
		l.Want(`"id":3,`, `"code":-32603`, "2 requests are in flight")
	}
	if n := strings.Count(log.String(), "too many are in flight"); n != 1 {
		t.Errorf("30 refusals have %d lines in the log, want one: %s", n, log)
	}
}

// Whoever has read an answer may use its id again.
func TestPipeIDsAreFreeOnceAnswered(t *testing.T) {
	s := moderntest.NewScript()
	f := frontOf(t, s, nil)
	answered := make(chan struct{})
	var p *Conn
	n := 0
	p = f.OpenConn(func(msg []byte) error {
		if !strings.Contains(string(msg), `"result"`) {
			t.Errorf("sent = %s, want a result", msg)
		}
		if n++; n == 2 {
			close(answered)
			return nil
		}
		m, _ := wire.Parse([]byte(moderntest.Request("1", "tools/call", "{}", `,"name":"again"`)), wire.Options{})
		p.Serve(&m) // while the answer is still being written
		return nil
	}, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	m, _ := wire.Parse([]byte(moderntest.Request("1", "tools/call", "{}", `,"name":"x"`)), wire.Options{})
	p.Serve(&m)
	<-answered
	p.Close()
}

// A client that does not read stops its own answers, and nothing else: requests are
// taken, served and cancelled.
func TestPipeStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := moderntest.NewScript()
		served, cancelled := make(chan string, 10), make(chan string, 10)
		quick := s.OnServe
		s.OnServe = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
			name, _ := wire.GetString(req.Params, "name")
			served <- name
			if name == "wait" {
				<-ctx.Done()
				cancelled <- name
				return nil, context.Cause(ctx)
			}
			return quick(ctx, req, x)
		}
		l := lineOf(t, frontOf(t, s, nil))
		l.Listen("0")
		mail := <-s.Listened
		l.Want("acknowledged")
		release := l.Hold("")
		l.Call("1", "a")
		l.Call("2", "wait")
		for range 1000 {
			moderntest.ToolsChanged(mail) // does not block whoever tells it
		}
		synctest.Wait()
		l.Call("3", "b")
		l.Cancel("2")
		synctest.Wait()
		if len(served) != 3 || len(cancelled) != 1 {
			t.Errorf("%d calls served, %d cancelled, want 3 and 1", len(served), len(cancelled))
		}
		release()
		synctest.Wait()
		got := map[string]int{}
		for len(l.Sent) > 0 {
			m, _ := wire.Parse([]byte(<-l.Sent), wire.Options{})
			got[m.Method+m.ID.String()]++
		}
		changes := got["notifications/tools/list_changednull"] // one more if they came while the first was told
		if got["1"] != 1 || got["3"] != 1 || changes < 1 || changes > 2 || len(got) != 3 {
			t.Errorf("sent = %v, want both answers and the changes as one", got)
		}
	})
}

// Questions end a response on a pipe as they do over HTTP, and the retry may come on
// another.
func TestM2L17RetriesOnPipes(t *testing.T) {
	s := moderntest.NewScript()
	s.OnServe = func(ctx context.Context, _ *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
		answers, err := x.RequestInput(ctx, []mcp.InputRequest{{Method: "elicitation/create", Params: []byte(`{"message":"?"}`)}})
		if err != nil {
			return nil, err
		}
		return mcp.NewResult([]byte(`{"content":[],"structuredContent":`+string(answers[0].Result)+`}`), nil), nil
	}
	f := frontOf(t, s, nil)
	l, other := lineOf(t, f), lineOf(t, f)
	for _, next := range []*moderntest.Line{l, other} {
		l.Send(moderntest.Request("1", "tools/call", `{"elicitation":{}}`, `,"name":"x"`))
		round := l.Want(`"id":1,`, `"resultType":"input_required"`, `"q1":{"method":"elicitation/create"`)
		state, _ := wire.GetString(wire.Get([]byte(round), "result"), "requestState")
		next.Send(moderntest.Request("2", "tools/call", `{"elicitation":{}}`,
			`,"name":"x","inputResponses":{"q1":{"action":"accept","content":{"n":1}}},"requestState":"`+state+`"`))
		next.Want(`"id":2,`, `"structuredContent":{"action":"accept","content":{"n":1}}`)
	}
}

// What a request is told meanwhile goes before its answer.
func TestPipeProgress(t *testing.T) {
	s := moderntest.NewScript()
	quick := s.OnServe
	s.OnServe = func(ctx context.Context, req *mcp.Request, x mcp.Caller) (*mcp.Result, error) {
		if err := x.Notify(ctx, mcp.Notification{Method: "notifications/progress", Params: []byte(`{"progressToken":1,"progress":1}`)}); err != nil {
			t.Error(err)
		}
		return quick(ctx, req, x)
	}
	l := lineOf(t, frontOf(t, s, func(o *Options) { o.KeepAlive = time.Nanosecond }))
	l.Call("1", "x")
	if got := l.Next(); got != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}` {
		t.Errorf("sent = %s, want progress, and no comment ever", got)
	}
	l.Want(`"id":1,`, `"result"`)
}
