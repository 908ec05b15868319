package steer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A Client is a client in a process of its own. Its methods are safe for
// concurrent use.
type Client struct {
	// What arrived.
	Progress *Inbox[any]
	Messages *Inbox[any]
	Changed  *Inbox[string] // "tools", "prompts", "resources", or the URI of a resource
	Asked    *Inbox[any]    // {method, params} of the server's questions

	// Set by Start, read-only after.
	cmd *exec.Cmd
	in  io.Closer

	log  process.Tail
	done chan struct{} // closed when its output has ended

	// mu guards the fields below, and keeps commands whole.
	mu      sync.Mutex
	out     *json.Encoder
	last    int
	replies map[int]chan remote.Line // capacity 1; by command
	answers map[string]json.RawMessage
	decide  func(q Question) // nil: answers decide
	hear    func(l remote.Line)
}

// A Question is one that the server puts to the client.
type Question struct {
	Method string
	Params json.RawMessage
	// Answer gives the client's answer. It is called once, by anybody, at any time.
	Answer func(result json.RawMessage) error
}

// Start starts the program of a client, and waits until it takes commands: an interpreter that loads an SDK
// takes its time, and no test measures that. Whoever gets a Client calls End.
func Start(argv ...string) (*Client, error) {
	c := &Client{
		cmd:      exec.Command(argv[0], argv[1:]...),
		done:     make(chan struct{}),
		Progress: NewInbox[any](), Messages: NewInbox[any](), Changed: NewInbox[string](), Asked: NewInbox[any](),
		replies: make(map[int]chan remote.Line),
	}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stderr, c.in, c.out = &c.log, in, json.NewEncoder(in)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(out) // ends with the process
	ctx, cancel := context.WithTimeout(context.Background(), process.StartTime)
	defer cancel()
	if _, err := c.Request(ctx, remote.Close, nil); err != nil { // there is no session yet: it only answers
		c.Kill()
		return nil, fmt.Errorf("starting %q: %w; it wrote:\n%s", argv, err, c.Log())
	}
	return c, nil
}

// End closes the client's input, which ends the process, and waits for it. It
// returns an error if the process had to be killed after a minute, or says by its
// status that something is wrong.
func (c *Client) End() error {
	_ = c.in.Close() // the process may be gone
	late := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	<-c.done
	err := c.cmd.Wait()
	if !late.Stop() {
		return errors.New("the client did not end by itself")
	}
	if err != nil {
		return fmt.Errorf("the client ended with %w", err)
	}
	return nil
}

// Pid returns the client's process id.
func (c *Client) Pid() int { return c.cmd.Process.Pid }

// Kill ends the client as kill -9 does, and waits for it. What it started is left to itself.
func (c *Client) Kill() {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.done
	_ = c.cmd.Wait() // it says that it was killed
}

// Log returns the last that the client wrote to standard error.
func (c *Client) Log() string { return c.log.String() }

// Ended reports whether the client's output has ended.
func (c *Client) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Expect forgets what arrived of progress, messages and questions, and says how
// questions are answered from here on, by method; others get an error.
func (c *Client) Expect(answers map[string]json.RawMessage) {
	c.Progress.Clear()
	c.Messages.Clear()
	c.Asked.Clear()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers, c.decide = answers, nil
}

// Decide has questions from here on decided by f, which must not block. It forgets what arrived
// before, as Expect does.
func (c *Client) Decide(f func(q Question)) {
	c.Expect(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decide = f
}

// Hear has other notifications than those of progress, messages and changed resources heard by
// f, which must not block.
func (c *Client) Hear(f func(l remote.Line)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hear = f
}

// read takes in what the client tells.
func (c *Client) read(out io.Reader) {
	defer close(c.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l remote.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			fmt.Fprintf(&c.log, "not a line of remote control: %s: %v\n", lines.Text(), err)
			continue
		}
		c.take(l)
	}
}

func (c *Client) take(l remote.Line) {
	switch {
	case l.Ask != 0:
		c.answer(l)
	case l.Method == "":
		c.mu.Lock()
		defer c.mu.Unlock()
		if to := c.replies[l.ID]; to != nil {
			to <- l
			delete(c.replies, l.ID)
		}
	case l.Method == "notifications/progress":
		c.Progress.Put(match.Wire(l.Params))
	case l.Method == "notifications/message":
		c.Messages.Put(match.Wire(l.Params))
	case l.Method == "notifications/resources/updated":
		var p struct{ URI string }
		_ = json.Unmarshal(l.Params, &p) // an update of "" is heard as one
		c.Changed.Put(p.URI)
	default:
		c.mu.Lock()
		hear := c.hear
		c.mu.Unlock()
		if hear != nil {
			hear(l)
		}
		for _, kind := range []string{"tools", "prompts", "resources"} {
			if l.Method == "notifications/"+kind+"/list_changed" {
				c.Changed.Put(kind)
			}
		}
	}
}

// answer says what Expect was told to a question.
func (c *Client) answer(l remote.Line) {
	if l.Method == "notifications/cancelled" {
		return // the server took it back
	}
	c.Asked.Put(map[string]any{"method": l.Method, "params": match.Wire(l.Params)})
	c.mu.Lock()
	result, ok := c.answers[l.Method]
	decide := c.decide
	c.mu.Unlock()
	if decide != nil {
		decide(Question{l.Method, l.Params, func(result json.RawMessage) error {
			return c.Send(&remote.Command{Method: remote.Answer, Of: l.Ask, Result: result})
		}})
		return
	}
	cmd := remote.Command{Method: remote.Answer, Of: l.Ask, Result: result}
	if !ok {
		cmd.Error = &remote.Error{Code: -32600, Message: "nobody expects " + l.Method}
	}
	if err := c.Send(&cmd); err != nil {
		fmt.Fprintln(&c.log, "answering:", err)
	}
}

// Send sends a command that has no reply, or one that nobody waits for.
func (c *Client) Send(cmd *remote.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(cmd)
}

// Running is a command whose reply is still to come.
type Running struct {
	ID    int
	reply chan remote.Line
}

// Begin sends a command of the protocol. params is what encodes to its params, or
// nil for none.
func (c *Client) Begin(method string, params any, progress bool) (Running, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return Running{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	r := Running{c.last, make(chan remote.Line, 1)}
	c.replies[r.ID] = r.reply
	cmd := &remote.Command{ID: r.ID, Method: method, Progress: progress}
	if params != nil {
		cmd.Params = text
	}
	return r, c.out.Encode(cmd)
}

// Wait returns the result, or the error, which is a [*remote.Error] if the client
// gave it.
func (c *Client) Wait(ctx context.Context, r Running) (any, error) {
	select {
	case l := <-r.reply:
		if l.Error != nil {
			return nil, l.Error
		}
		return match.Wire(l.Result), nil
	case <-c.done:
		return nil, errors.New("the client has ended")
	case <-ctx.Done():
		return nil, fmt.Errorf("no reply: %w", context.Cause(ctx))
	}
}

// Request is Begin and Wait.
func (c *Client) Request(ctx context.Context, method string, params any) (any, error) {
	r, err := c.Begin(method, params, false)
	if err != nil {
		return nil, err
	}
	return c.Wait(ctx, r)
}
