// Package remote answers one question: how does a test steer a client that is
// made with some SDK, of some version, and see what the SDK shows its user?
//
// The client is a process of its own. On standard input it reads a [Command] on
// each line, on standard output it writes a [Line] on each: the reply to a
// command, a notification that arrived, or a question of the server, which the
// test answers with another command. Clients in JavaScript speak the same
// (node/remote.mjs). The package knows no SDK and judges nothing.
package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The methods of commands that are not the protocol's own.
const (
	Cancel = "cancel" // gives up the command with the id Of
	Answer = "answer" // answers the question Of
	Close  = "close"  // ends the client's session; the next initialize opens another
)

// A Command is what the test wants: a request of the protocol, by its method and
// params, or one of [Cancel], [Answer] and [Close]. The params of initialize are
// a [Target], and notifications/roots/list_changed has the new roots, as a result
// of roots/list.
type Command struct {
	ID       int             `json:"id"`
	Method   string          `json:"method"`
	Params   json.RawMessage `json:"params,omitempty"`
	Progress bool            `json:"progress,omitempty"` // ask for progress of a request
	Of       int             `json:"of,omitempty"`

	// What an answer says.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// A Target says where the server is and what the client declares.
type Target struct {
	Transport    string          `json:"transport"`     // http, post (which is http without a GET stream), sse, ws or stdio
	URL          string          `json:"url,omitempty"` // unless stdio
	Argv         []string        `json:"argv,omitempty"`
	Capabilities json.RawMessage `json:"capabilities"`
	Roots        json.RawMessage `json:"roots,omitempty"` // a result of roots/list; none if absent
	Login        *Login          `json:"login,omitempty"` // how the client logs in if the server asks; not at all if absent
}

// A Login says how a client logs in with an authorization server. It has no
// browser: it gets Browser with the authorization URL in the query parameter url,
// and the answer is a JSON object of the query parameters that the authorization
// server sent the user back with.
type Login struct {
	Browser  string `json:"browser"`
	Redirect string `json:"redirect"`           // the redirect URI that it names
	Document string `json:"document,omitempty"` // URL of its client id metadata document; without, it registers
}

// A Line is what the client tells: with ID alone, the reply to a command; with a
// method, a notification that arrived (Of names the command it belongs to, if
// the SDK tells); with Ask, a question. A question that the server took back is
// told of by a second line, with the method notifications/cancelled.
type Line struct {
	ID     int             `json:"id,omitempty"`
	Ask    int             `json:"ask,omitempty"`
	Of     int             `json:"of,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// An Error is a JSON-RPC error as the SDK shows it. Code is 0 if it is none.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// A Client is an SDK's client. Do runs a request of the protocol and returns what
// the SDK made of the result; an error that is none of the server is not an
// [*Error]. It may run several at once, after initialize has returned.
type Client interface {
	Do(ctx context.Context, c *Command) (any, error)
	Close() error
}

// A Controller reads commands and writes lines. Its methods are safe for
// concurrent use.
type Controller struct {
	// mu guards the fields below, and keeps lines whole.
	mu      sync.Mutex
	out     *json.Encoder
	running map[int]context.CancelFunc
	asks    int
	asked   map[int]chan Command // capacity 1
}

// NewController returns a Controller that writes to out.
func NewController(out io.Writer) *Controller {
	return &Controller{out: json.NewEncoder(out), running: make(map[int]context.CancelFunc), asked: make(map[int]chan Command)}
}

// Run reads commands for c until in ends, and waits for those that run. It begins
// the next command only after a [Close] is done.
func (r *Controller) Run(in io.Reader, c Client) error {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		cmd := new(Command)
		if err := json.Unmarshal(lines.Bytes(), cmd); err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		switch cmd.Method {
		case Cancel:
			r.cancel(cmd.Of)
		case Answer:
			r.answer(cmd)
		case Close:
			r.reply(cmd, struct{}{}, c.Close())
		default:
			ctx := r.begin(ctx, cmd)
			all.Go(func() { r.run(ctx, cmd, c) }) // ends with the command, at the latest when stop is called
		}
	}
	return lines.Err()
}

func (r *Controller) begin(ctx context.Context, cmd *Command) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[cmd.ID] = cancel
	return ctx
}

func (r *Controller) run(ctx context.Context, cmd *Command, c Client) {
	result, err := c.Do(ctx, cmd)
	r.cancel(cmd.ID)
	r.reply(cmd, result, err)
}

func (r *Controller) cancel(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.running[id]; cancel != nil {
		cancel()
		delete(r.running, id)
	}
}

func (r *Controller) answer(cmd *Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to := r.asked[cmd.Of]; to != nil { // else the question was taken back
		to <- *cmd
		delete(r.asked, cmd.Of)
	}
}

func (r *Controller) reply(cmd *Command, result any, err error) {
	l := Line{ID: cmd.ID}
	if err == nil {
		l.Result, err = json.Marshal(result)
	}
	if err != nil && !errors.As(err, &l.Error) {
		l.Error = &Error{Message: err.Error()}
	}
	r.write(l)
}

// Notice tells of a notification that arrived. of is the command that it belongs
// to, or 0.
func (r *Controller) Notice(method string, of int, params any) {
	text, err := json.Marshal(params)
	if err != nil {
		text, _ = json.Marshal(err.Error()) // a string can be encoded
	}
	r.write(Line{Method: method, Of: of, Params: text})
}

// Ask puts a question of the server to the test, and waits for the answer or for
// ctx, which says that the server took it back.
func (r *Controller) Ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan Command, 1)
	r.mu.Lock()
	r.asks++
	id := r.asks
	r.asked[id] = answer
	r.mu.Unlock()
	r.write(Line{Ask: id, Method: method, Params: text})
	select {
	case a := <-answer:
		if a.Error != nil {
			return nil, a.Error
		}
		return a.Result, nil
	case <-ctx.Done():
		r.mu.Lock()
		delete(r.asked, id)
		r.mu.Unlock()
		r.write(Line{Ask: id, Method: "notifications/cancelled"})
		return nil, context.Cause(ctx)
	}
}

// write drops what can't be written: the test is gone, and closes in too.
func (r *Controller) write(l Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(l)
}
