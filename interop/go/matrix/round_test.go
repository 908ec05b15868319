package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// The bounds of an answer, and of a notification that must come. They are long: the machine may be busy.
const (
	answerTime = 3 * time.Minute
	noticeTime = time.Minute
	againTime  = 500 * time.Millisecond // for a change that is made again
)

// A round is a client in one cell.
type round struct {
	*steer.Client
	world  *world
	cell   Cell
	server *Server
}

// take goes through the steps of the cell, to the first that goes wrong. The session is
// closed in any case: one that comes too late would be in the way of the next cell.
func (r *round) take(ctx context.Context) error {
	hello, err := r.do(ctx, "initialize", r.world.target(r.cell))
	if err != nil {
		err = fmt.Errorf("connect: %w", err)
	} else {
		err = r.rest(ctx, hello)
	}
	if _, err2 := r.do(ctx, remote.Close, nil); err2 != nil {
		err = errors.Join(err, fmt.Errorf("closing the session: %w", err2))
	}
	return err
}

func (r *round) rest(ctx context.Context, hello any) error {
	want := map[string]any{"protocolVersion": r.world.table.Clients[r.cell.Client].Revisions[r.cell.Front], "serverInfo": r.server.Info}
	if err := mismatch(want, hello); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for _, step := range steps[1:] {
		if r.world.table.without(r.cell, step) != "" {
			continue
		}
		if err := r.step(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func (r *round) step(ctx context.Context, step string) error {
	switch step {
	case "list":
		return r.list(ctx)
	case "call":
		return r.ask(ctx, "tools/call", r.server.Call)
	case "read":
		return r.ask(ctx, "resources/read", r.server.Read)
	case "prompt":
		return r.ask(ctx, "prompts/get", r.server.Prompt)
	case "notice":
		return r.notice(ctx, r.server.Notice)
	}
	return errors.New("unknown step")
}

func (r *round) do(ctx context.Context, method string, params any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return r.Request(ctx, method, params)
}

func mismatch(want, got any) error {
	if why := match.Mismatch("result", want, got); why != "" {
		return errors.New(why)
	}
	return nil
}

// list reads the list of tools, page by page.
func (r *round) list(ctx context.Context) error {
	var names []string
	for cursor := ""; ; {
		params := make(map[string]string)
		if cursor != "" {
			params["cursor"] = cursor
		}
		res, err := r.do(ctx, "tools/list", params)
		if err != nil {
			return err
		}
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if err := convert(res, &page); err != nil {
			return err
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(r.server.Tools)); !slices.Equal(names, want) {
		return fmt.Errorf("the tools are %q, want %q", names, want)
	}
	return nil
}

func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// ask fills in what is the cell's own, asks, and compares.
func (r *round) ask(ctx context.Context, method string, a *Asking) error {
	filled, err := r.fill(a)
	if err != nil {
		return err
	}
	got, err := r.do(ctx, method, filled.Params)
	if err != nil {
		return err
	}
	return mismatch(filled.Want, got)
}

func (r *round) fill(a *Asking) (*Asking, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	words := strings.NewReplacer("{cell}", strings.Join([]string{r.cell.Client, r.cell.Front, r.cell.Back}, "-"),
		"{dir}", r.world.folder(spot{r.cell.Server, r.cell.Back}))
	filled := new(Asking)
	return filled, json.Unmarshal([]byte(words.Replace(string(text))), filled)
}

// notice subscribes, unless it is to a list, and waits to hear of a change.
func (r *round) notice(ctx context.Context, n *Notice) error {
	r.Changed.Clear()
	want := n.Of
	if n.URI != "" {
		want = n.URI
		if _, err := r.do(ctx, "resources/subscribe", map[string]string{"uri": n.URI}); err != nil {
			return fmt.Errorf("subscribing to %s: %w", n.URI, err)
		}
	}
	if err := r.hear(ctx, n, want); err != nil || n.URI == "" {
		return err
	}
	if _, err := r.do(ctx, "resources/unsubscribe", map[string]string{"uri": n.URI}); err != nil {
		return fmt.Errorf("unsubscribing from %s: %w", n.URI, err)
	}
	return nil
}

// hear makes a change and waits to hear of it. A change of a list, or for a hasty
// client, is made again and again: they begin to listen sometime.
func (r *round) hear(ctx context.Context, n *Notice, want string) error {
	again := n.Of != "" || r.world.table.Clients[r.cell.Client].Hasty != ""
	end := time.Now().Add(noticeTime)
	for try := 0; time.Now().Before(end); try++ {
		if n.Trigger != nil && (try == 0 || again) {
			if err := r.ask(ctx, "tools/call", n.Trigger); err != nil {
				return fmt.Errorf("making a change: %w", err)
			}
		}
		if r.arrives(want) {
			return nil
		}
	}
	return fmt.Errorf("no change of %s within %v", want, noticeTime)
}

// arrives waits a while for news of want, whatever else there is.
func (r *round) arrives(want string) bool {
	for got, ok := r.Changed.Take(againTime); ok; got, ok = r.Changed.Take(againTime) {
		if got == want {
			return true
		}
	}
	return false
}
