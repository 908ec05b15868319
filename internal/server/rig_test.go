package server

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// connect is timeouts.connect: over HTTP the second of two requests has a third of it.
	connect = 60 * time.Second
	// nobodyURL is where nobody listens.
	nobodyURL = "http://127.0.0.1:1/mcp"

	info = `{"name":"mcpbridge","version":"test"}`
)

// options returns those of a server at a URL, which is empty for other transports.
func options(url string) Options {
	return Options{Options: upstream.Options{
		Name: "odd", URL: url, ClientInfo: []byte(info), Settings: settings.Server{Timeouts: settings.Timeouts{Connect: connect}},
	}}
}

// overHTTP returns a server that h is, in memory.
func overHTTP(t *testing.T, h http.Handler) *Server {
	srv, rt := backtest.InMemory(t, h)
	o := options(srv.URL + "/mcp")
	o.RoundTripper = rt
	return New(o)
}

// A process is one of a server's command, in memory. It ends when its play does, which has to
// be soon after its input has ended.
type process struct {
	transport.Conn // the server's connection to it
	far            transport.Conn
	unread         atomic.Int64 // messages
	once           sync.Once
	closed         chan struct{} // by Close
	done           chan struct{} // closed when play has returned
	err            error         // set before done is closed
}

// A play is what a process does; the error is how it ends.
type play func(p *process) error

func (p *process) run(do play) {
	defer close(p.done)
	p.err = do(p)
	_ = p.far.Close()
}

func (p *process) Write(msg []byte) error {
	p.unread.Add(1)
	return p.Conn.Write(msg)
}

// Close also waits for the end of the process.
func (p *process) Close() error {
	p.once.Do(func() { close(p.closed) })
	err := p.Conn.Close()
	<-p.done
	return err
}

func (p *process) Unread() (int, bool) { return int(p.unread.Load()), true }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// next returns the next message that the process reads; false at the end of its input.
func (p *process) next() (wire.Message, bool) {
	text, err := p.far.Read()
	if err != nil {
		return wire.Message{}, false
	}
	p.unread.Add(-1)
	m, err := wire.Parse(bytes.Clone(text), wire.Options{})
	return m, err == nil
}

// answer writes text, in which %s is the id of a request.
func (p *process) answer(m wire.Message, text string) {
	_ = p.far.Write([]byte(strings.ReplaceAll(text, "%s", m.ID.String()))) // or it was closed
}

func exited(status string) error { return &transport.ExitError{Name: "odd", Status: status} }

// script is a play of lines, each of which reads a message, except quit and hang.
func script(lines string) play {
	return func(p *process) error {
		for line := range strings.SplitSeq(lines, "\n") {
			verb, text, _ := strings.Cut(line, " ")
			switch verb {
			case "quit":
				return exited("exit status 3")
			case "hang":
				<-p.closed
				return nil
			}
			m, ok := p.next()
			switch {
			case !ok:
				return nil
			case verb == "exit":
				return exited("exit status 1")
			case verb == "answer":
				p.answer(m, text)
			}
		}
		for ok := true; ok; {
			_, ok = p.next()
		}
		return nil
	}
}

// serve is a play that answers each request by its method. None means that the process
// refuses it as a method that it does not know.
func serve(answers map[string]string) play {
	return func(p *process) error {
		for {
			m, ok := p.next()
			switch {
			case !ok:
				return nil
			case m.ID.IsZero():
			case answers[m.Method] != "":
				p.answer(m, answers[m.Method])
			default:
				p.answer(m, backtest.SaysUnknown)
			}
		}
	}
}

// byCommand returns a server whose processes do one play each, the last one again and
// again, and how many were started.
func byCommand(t *testing.T, o Options, plays ...play) (*Server, *atomic.Int32) {
	var starts atomic.Int32
	var running sync.WaitGroup
	if o.Command.Argv == nil && o.URL == "" {
		o.Command.Argv = []string{"odd"}
	}
	o.Start = func(transport.CommandOptions) (transport.Conn, error) {
		near, far := transport.NewPipe()
		p := &process{Conn: near, far: far, closed: make(chan struct{}), done: make(chan struct{})}
		do := plays[min(int(starts.Add(1)), len(plays))-1]
		running.Go(func() { p.run(do) }) // ends with Close
		return p, nil
	}
	s := New(o)
	t.Cleanup(func() {
		s.Close()
		running.Wait()
	})
	return s, &starts
}
