package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/linebuffer"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func info() trace.Info {
	return trace.Info{
		Server: "docs", Method: "tools/call", Name: "read file", Era: "legacy", Revision: "2025-11-25", ID: `"a"`,
		Principal: "ada", Session: "s1", ClientInfo: []byte(`{"name":"ide","version":"2"}`), Arrival: &trace.Arrival{Protocol: "http", Peer: "10.0.0.7:4711"},
	}
}

// write has one request written.
func write(o *trace.Observers, i trace.Info, err error) *trace.Request {
	r := o.Begin(i)
	r.SetTraceID("4bf92f3577b34da6a3ce929d0e0e4736")
	r.Received([]byte("12345"))
	r.Upstream(trace.Exchange{}).End(nil)
	r.Sent([]byte("123"))
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	r.Note(outcome, err)
	r.End(nil)
	return r
}

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(Options{To: &out, Format: Text})
		r := write(trace.New(l), info(), wire.Errorf(-32602, "no"))
		l.Close()
		want := "time=2000-01-01T00:00:00.000Z request=" + r.RequestID() + ` upstream=docs method=tools/call name="read file" era=legacy id="\"a\"" session=s1 client=ide/2 principal=ada ` +
			"downstream=10.0.0.7:4711 trace=4bf92f3577b34da6a3ce929d0e0e4736 in=5 out=3 requests=1 took=0.000000 outcome=failed error=-32602\n"
		if got := out.String(); got != want {
			t.Errorf("text:\n%swant\n%s", got, want)
		}
		out.Reset()
		l = New(Options{To: &out, Format: JSON})
		r = write(trace.New(l), info(), nil)
		l.Close()
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", out.String(), err)
		}
		for name, want := range map[string]any{
			"time": "2000-01-01T00:00:00.000Z", "request": r.RequestID(), "upstream": "docs", "name": "read file", "id": `"a"`, "session": "s1", "client": "ide/2",
			"principal": "ada", "trace": "4bf92f3577b34da6a3ce929d0e0e4736", "in": 5.0, "out": 3.0, "requests": 1.0, "took": 0.0, "outcome": "ok", "error": nil,
		} {
			if got[name] != want {
				t.Errorf("json: %s is %v, want %v", name, got[name], want)
			}
		}
	})
}

// A request to a group is told of as one to the member that has served it.
func TestG03LinesOfAGroup(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{To: &out, Format: Text})
	r := trace.New(l).Begin(trace.Info{Server: "all", Method: "tools/call", Name: "files__read"})
	r.Pass("files", "read")
	r.End(nil)
	l.Close()
	if want := " upstream=files group=all method=tools/call name=read "; !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %q", out.String(), want)
	}
}

// A name of a client makes neither another line nor another key of one, and no secret is
// written.
func TestNamesStayInTheirPlace(t *testing.T) {
	for _, format := range []Format{Text, JSON} {
		var out bytes.Buffer
		l := New(Options{To: &out, Format: format, Secrets: redact.New(`hunter"2hunter`)})
		i := info()
		i.Name, i.Session = "x outcome=ok\ntime=1\u2028 \x1b[31m", "a hunter\"2hunter"
		i.ClientInfo = []byte(`{"name":"` + strings.Repeat("n", 9000) + `"}`)
		write(trace.New(l), i, nil)
		l.Close()
		got := out.String()
		if strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") || strings.Contains(got, "hunter") || len(got) > 2000 {
			t.Errorf("%s: %q", format, got)
		}
	}
}

// Lines wait for a moment, but not after a failure, nor at the end.
func TestLinesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bridgetest.Log
		l := New(Options{To: &out, Format: Text})
		o := trace.New(l)
		lines := func() int { return strings.Count(out.String(), "\n") }
		write(o, info(), nil)
		if lines() != 0 {
			t.Error("a line did not wait")
		}
		time.Sleep(linebuffer.Delay + time.Millisecond)
		synctest.Wait()
		if lines() != 1 {
			t.Errorf("%d lines after the delay, want 1", lines())
		}
		write(o, info(), errors.New("lost"))
		if lines() != 2 {
			t.Errorf("%d lines after a failure, want 2", lines())
		}
		write(o, info(), nil)
		l.Close()
		if lines() != 3 {
			t.Errorf("%d lines after Close, want 3", lines())
		}
	})
}

func BenchmarkLine(b *testing.B) {
	for _, format := range []Format{Text, JSON} {
		b.Run(string(format), func(b *testing.B) {
			l := New(Options{To: io.Discard, Format: format, Secrets: redact.New("a-token-of-some-length")})
			defer l.Close()
			o, i := trace.New(l), info()
			b.ReportAllocs()
			for b.Loop() {
				write(o, i, nil)
			}
		})
	}
}

// A line takes the memory of its request, and no other: that and what is counted of it.
func TestAllocations(t *testing.T) {
	for _, format := range []Format{Text, JSON} {
		l := New(Options{To: io.Discard, Format: format, Secrets: redact.New("a-token-of-some-length")})
		defer l.Close()
		o, i := trace.New(l), info()
		i.Name, i.ID = "read", "7" // without what has to be escaped
		call := []byte("12345")
		if got := testing.AllocsPerRun(1000, func() {
			i.Arrival = o.Arrive(trace.Arrival{Protocol: "http", Peer: "10.0.0.7:4711"})
			r := o.Begin(i)
			r.Received(call)
			r.Upstream(trace.Exchange{}).End(nil)
			r.Sent(call)
			r.Note("ok", nil)
			r.End(nil)
		}); got > 2 {
			t.Errorf("%s: %v allocations for a line, want at most 2", format, got)
		}
	}
}
