package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// remotes are the clients under remote control, by the names they have in
// legacy.json.
var remotes = map[string][]string{
	"sdk-1.32.2": {nodeBinary, "../node/remote.mjs", "sdk-1.32.2"},
	"sdk-1.12.3": {nodeBinary, "../node/remote.mjs", "sdk-1.12.3"},
	"sdk-1.9.0":  {nodeBinary, "../node/remote.mjs", "sdk-1.9.0"},
	"go-1.6.1":   {"../bin/client-go161"},
	"mcpgo":      {"../bin/client-mcpgo"},
}

// A remoteClient is a client in a process of its own, on one server.
type remoteClient struct {
	hello any // the result of initialize
	log   process.Tail
	done  chan struct{} // closed when its output has ended

	// What arrived.
	progress *inbox[any]
	messages *inbox[any]
	changed  *inbox[string] // "tools", "prompts", "resources", or the URI of a resource
	asked    *inbox[any]    // {method, params} of the server's questions

	// mu guards the fields below, and keeps commands whole.
	mu      sync.Mutex
	out     *json.Encoder
	last    int
	replies map[int]chan remote.Line // capacity 1; by command
	answers map[string]json.RawMessage
}

// startRemote starts a client and has it initialize a session. It ends with the
// test.
func startRemote(t *testing.T, name string, to remote.Target) *remoteClient {
	t.Helper()
	argv := remotes[name]
	cmd := exec.Command(argv[0], argv[1:]...)
	c := &remoteClient{
		done:     make(chan struct{}),
		progress: newInbox[any](), messages: newInbox[any](), changed: newInbox[string](), asked: newInbox[any](),
		replies: make(map[int]chan remote.Line),
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, c.out = &c.log, json.NewEncoder(in)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(out) // ends with the process
	t.Cleanup(func() { c.stop(t, cmd, in) })
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	if c.hello, err = c.request(ctx, "initialize", to); err != nil {
		t.Fatalf("initialize: %v; %s wrote:\n%s", err, name, c.log.String())
	}
	return c
}

// stop ends the session, then the process.
func (c *remoteClient) stop(t *testing.T, cmd *exec.Cmd, in io.Closer) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := c.request(ctx, remote.Close, nil); err != nil {
		t.Errorf("closing the session: %v", err)
	}
	in.Close()
	late := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
	<-c.done
	err := cmd.Wait()
	if !late.Stop() {
		t.Errorf("the client did not end by itself")
	} else if err != nil {
		t.Errorf("the client ended with %v", err)
	}
	if t.Failed() {
		t.Logf("the client wrote:\n%s", c.log.String())
	}
}

// read takes in what the client tells.
func (c *remoteClient) read(out io.Reader) {
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

func (c *remoteClient) take(l remote.Line) {
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
		c.progress.put(wire(l.Params))
	case l.Method == "notifications/message":
		c.messages.put(wire(l.Params))
	case l.Method == "notifications/resources/updated":
		var p struct{ URI string }
		_ = json.Unmarshal(l.Params, &p) // an update of "" is heard as one
		c.changed.put(p.URI)
	default:
		for _, kind := range []string{"tools", "prompts", "resources"} {
			if l.Method == "notifications/"+kind+"/list_changed" {
				c.changed.put(kind)
			}
		}
	}
}

// answer says what the step under way says to a question.
func (c *remoteClient) answer(l remote.Line) {
	if l.Method == "notifications/cancelled" {
		return // the server took it back
	}
	c.asked.put(map[string]any{"method": l.Method, "params": wire(l.Params)})
	c.mu.Lock()
	result, ok := c.answers[l.Method]
	c.mu.Unlock()
	cmd := remote.Command{Method: remote.Answer, Of: l.Ask, Result: result}
	if !ok {
		cmd.Error = &remote.Error{Code: -32600, Message: "nobody expects " + l.Method}
	}
	if err := c.send(&cmd); err != nil {
		fmt.Fprintln(&c.log, "answering:", err)
	}
}

func (c *remoteClient) send(cmd *remote.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Encode(cmd)
}

// A running command is one whose reply is still to come.
type running struct {
	id    int
	reply chan remote.Line
}

// start sends a command of the protocol. params is what encodes to its params.
func (c *remoteClient) start(method string, params any, progress bool) (running, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return running{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	r := running{c.last, make(chan remote.Line, 1)}
	c.replies[r.id] = r.reply
	cmd := &remote.Command{ID: r.id, Method: method, Progress: progress}
	if params != nil {
		cmd.Params = text
	}
	return r, c.out.Encode(cmd)
}

// wait returns the result, or the error, which is a [*remote.Error] if the server
// gave it.
func (c *remoteClient) wait(ctx context.Context, r running) (any, error) {
	select {
	case l := <-r.reply:
		if l.Error != nil {
			return nil, l.Error
		}
		return wire(l.Result), nil
	case <-c.done:
		return nil, errors.New("the client has ended")
	case <-ctx.Done():
		return nil, fmt.Errorf("no reply: %w", context.Cause(ctx))
	}
}

func (c *remoteClient) request(ctx context.Context, method string, params any) (any, error) {
	r, err := c.start(method, params, false)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx, r)
}
