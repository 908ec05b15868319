package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
)

// A scripted client waits to be cancelled, fails as a server does, or asks.
type scripted struct{ ctl *Controller }

func (s scripted) Close() error { return nil }

func (s scripted) Do(ctx context.Context, c *Command) (any, error) {
	switch c.Method {
	case "wait":
		s.ctl.Notice("waiting", c.ID, nil)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "fail":
		return nil, fmt.Errorf("calling: %w", &Error{Code: -32602, Message: "no", Data: json.RawMessage(`1`)})
	case "doubt":
		answer, err := s.ctl.Ask(ctx, "elicitation/create", map[string]int{"n": 1})
		return answer, err
	}
	return c.Params, nil
}

// TestController takes a client through what a test can do with it.
func TestController(t *testing.T) {
	in, commands := io.Pipe()
	lines, out := io.Pipe()
	ctl := NewController(out)
	ended := make(chan error, 1)
	go func() { ended <- ctl.Run(in, scripted{ctl}) }() // ends when commands is closed, below
	got := bufio.NewScanner(lines)
	for _, tt := range []struct{ name, command, want string }{
		{"a request", `{"id":1,"method":"echo","params":{"n":9007199254740993}}`, `{"id":1,"result":{"n":9007199254740993}}`},
		{"an error of the server", `{"id":2,"method":"fail"}`, `{"id":2,"error":{"code":-32602,"message":"no","data":1}}`},
		{"a question", `{"id":3,"method":"doubt"}`, `{"ask":1,"method":"elicitation/create","params":{"n":1}}`},
		{"its answer", `{"method":"answer","of":1,"result":{"action":"accept"}}`, `{"id":3,"result":{"action":"accept"}}`},
		{"an answer to nothing", `{"method":"answer","of":7}` + "\n" + `{"id":4,"method":"doubt"}`, `{"ask":2,"method":"elicitation/create","params":{"n":1}}`},
		{"a question refused", `{"method":"answer","of":2,"error":{"code":-1,"message":"never"}}`, `{"id":4,"error":{"code":-1,"message":"never"}}`},
		{"a long request", `{"id":5,"method":"wait"}`, `{"of":5,"method":"waiting","params":null}`},
		{"given up", `{"method":"cancel","of":5}`, `{"id":5,"error":{"code":0,"message":"context canceled"}}`},
		{"a question", `{"id":6,"method":"doubt"}`, `{"ask":3,"method":"elicitation/create","params":{"n":1}}`},
		{"taken back", `{"method":"cancel","of":6}`, `{"ask":3,"method":"notifications/cancelled"}`},
		{"with its request", ``, `{"id":6,"error":{"code":0,"message":"context canceled"}}`},
		{"the session's end", `{"id":8,"method":"close"}`, `{"id":8,"result":{}}`},
		{"another session", `{"id":9,"method":"echo","params":{}}`, `{"id":9,"result":{}}`},
	} {
		if tt.command != "" {
			if _, err := fmt.Fprintln(commands, tt.command); err != nil {
				t.Fatal(err)
			}
		}
		if !got.Scan() || got.Text() != tt.want {
			t.Fatalf("%s: got %s, want %s", tt.name, got.Text(), tt.want)
		}
	}
	if err := commands.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestBadCommand(t *testing.T) {
	in, commands := io.Pipe()
	go func() { commands.CloseWithError(errors.New("gone")) }() // ends at once
	if err := NewController(io.Discard).Run(in, nil); err == nil {
		t.Error("Run = nil after its input broke")
	}
}
