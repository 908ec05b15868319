package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/match"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// A legacyRound is a client under remote control at its cells.
type legacyRound struct {
	*remoteClient
	client  *Client
	cut     func(get bool) int // breaks the client's connections, those to GET or the others
	resumed func() int         // counts how often the client came back with Last-Event-ID
	repeats bool               // as of legacySpot
	asked   []any              // questions so far, where they may be repeated
}

// legacyOps are the steps of a client of the legacy era.
//
// request sends any method. cancel starts a call, takes Before until it succeeds,
// gives the call up, and takes Until until it succeeds. resume starts a call,
// breaks the connection of its answer after the first progress, and wants the
// result all the same. gap breaks the GET stream of a client that is subscribed,
// and wants to hear of a change made meanwhile. unwatch subscribes to two URIs,
// leaves the first, has both changed by Trigger, and wants to hear of Other alone.
var legacyOps = map[string]func(*legacyRound, context.Context, *Step) error{
	"discover": (*legacyRound).initialized,
	"list":     (*legacyRound).list,
	"pages":    (*legacyRound).pages,
	"call":     (*legacyRound).call,
	"watch":    (*legacyRound).watch,
	"read":     asking("resources/read"),
	"prompt":   asking("prompts/get"),
	"complete": asking("completion/complete"),
	"request": func(r *legacyRound, ctx context.Context, s *Step) error {
		return asking(s.Method)(r, ctx, s)
	},
	"cancel":  (*legacyRound).cancel,
	"resume":  (*legacyRound).resume,
	"gap":     (*legacyRound).gap,
	"unwatch": (*legacyRound).unwatch,
}

// cell takes the steps of a cell, to the first that goes wrong.
func (r *legacyRound) cell(ctx context.Context, steps []Step) error {
	for i := range steps {
		s := &steps[i]
		do := legacyOps[s.Op]
		if do == nil {
			return fmt.Errorf("unknown op %q", s.Op)
		}
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		err := do(r, ctx, s)
		cancel()
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.Op, s.Params, err)
		}
	}
	return nil
}

// judge compares a result, or the error instead of one, with what is wanted.
func (r *legacyRound) judge(s *Step, res any, err error) error {
	if s.Error == nil {
		if err != nil {
			return err
		}
		return reject(match.Mismatch("result", s.Want, res))
	}
	var e *remote.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("got result %s and error %v, want a JSON-RPC error like %s", match.Brief(res), err, match.Brief(s.Error))
	}
	want := s.Error
	if w, ok := want.(map[string]any); ok && r.client.NoErrorData {
		w = maps.Clone(w)
		delete(w, "data")
		want = w
	}
	return reject(match.Mismatch("error", want, match.Wire(e)))
}

// initialized checks what the client was told of the server. The revision in the
// table is the modern clients'.
func (r *legacyRound) initialized(_ context.Context, s *Step) error {
	want, ok := s.Want.(map[string]any)
	if !ok {
		return fmt.Errorf("want is %s, want an object", match.Brief(s.Want))
	}
	want = maps.Clone(want)
	want["protocolVersion"] = r.client.Revision
	return reject(match.Mismatch("result", want, r.hello))
}

func asking(method string) func(*legacyRound, context.Context, *Step) error {
	return func(r *legacyRound, ctx context.Context, s *Step) error {
		r.Expect(s.Answers)
		res, err := r.Request(ctx, method, s.Params)
		return errors.Join(r.judge(s, res, err), r.questioned(s))
	}
}

func (r *legacyRound) questioned(s *Step) error {
	if s.Asked == nil {
		return nil
	}
	want, isList := s.Asked.([]any) // else it is a pattern, which takes repeats
	got := r.Asked.Collect(len(want))
	if r.repeats && isList {
		got = r.withoutRepeats(got, len(got)-len(want))
	}
	return reject(match.Mismatch("asked", s.Asked, got))
}

// withoutRepeats leaves out at most so many questions that were asked before.
func (r *legacyRound) withoutRepeats(got []any, most int) []any {
	kept := []any{}
	for _, q := range got {
		if most > 0 && slices.ContainsFunc(r.asked, func(earlier any) bool { return reflect.DeepEqual(earlier, q) }) {
			most--
			continue
		}
		kept, r.asked = append(kept, q), append(r.asked, q)
	}
	return kept
}

func (r *legacyRound) call(ctx context.Context, s *Step) error {
	r.Expect(s.Answers)
	run, err := r.Begin("tools/call", s.Params, s.Progress != nil)
	if err != nil {
		return err
	}
	res, err := r.Wait(ctx, run)
	return errors.Join(r.judge(s, res, err), r.questioned(s), r.heardWith(s))
}

// heardWith checks what a call sent before its result, which some SDKs hand over
// after it.
func (r *legacyRound) heardWith(s *Step) (err error) {
	if s.Progress != nil {
		want := slices.Concat(s.Progress, s.Last)
		err = reject(match.Mismatch("progress", want, r.Progress.Collect(len(want))))
	}
	switch {
	case s.Messages != nil:
		return errors.Join(err, reject(match.Mismatch("messages", s.Messages, r.Messages.Collect(len(s.Messages)))))
	case s.Some != nil:
		return errors.Join(err, reject(match.Mismatch("messages", map[string]any{"$has": s.Some}, r.Messages.Collect(len(s.Some)))))
	}
	return err
}

// listMethods is how lists are asked for.
var listMethods = map[string]string{
	"tools": "tools/list", "resources": "resources/list", "resourceTemplates": "resources/templates/list", "prompts": "prompts/list",
}

// readList returns a whole list, and of how many pages.
func (r *legacyRound) readList(ctx context.Context, of string) (items []any, pages int, err error) {
	items = []any{}
	params := map[string]any{}
	for {
		res, err := r.Request(ctx, listMethods[of], params)
		if err != nil {
			return nil, pages, err
		}
		page, _ := res.(map[string]any)
		some, ok := page[of].([]any)
		if !ok {
			return nil, pages, fmt.Errorf("a page of %s is %s", of, match.Brief(res))
		}
		pages, items = pages+1, append(items, some...)
		next, _ := page["nextCursor"].(string)
		if next == "" {
			return items, pages, nil
		}
		params["cursor"] = next
	}
}

func (r *legacyRound) list(ctx context.Context, s *Step) error {
	items, _, err := r.readList(ctx, s.Of)
	if err != nil {
		return err
	}
	if err := s.named(items); err != nil || s.Want == nil {
		return err
	}
	return reject(match.Mismatch(s.Of, s.Want, items))
}

func (r *legacyRound) pages(ctx context.Context, s *Step) error {
	_, n, err := r.readList(ctx, s.Of)
	if err == nil && n != s.Pages {
		err = fmt.Errorf("%s came in %d pages, want %d", s.Of, n, s.Pages)
	}
	return err
}

// watch subscribes, unless it is to a list, makes the change, and waits to hear of
// it.
func (r *legacyRound) watch(ctx context.Context, s *Step) error {
	r.Changed.Clear()
	want := s.Of
	if s.URI != "" {
		want = s.URI
		if err := r.subscribe(ctx, "subscribe", s.URI); err != nil {
			return err
		}
		defer r.subscribe(context.WithoutCancel(ctx), "unsubscribe", s.URI)
	}
	return r.hear(ctx, s, want)
}

func (r *legacyRound) subscribe(ctx context.Context, verb, uri string) error {
	if _, err := r.Request(ctx, "resources/"+verb, map[string]string{"uri": uri}); err != nil {
		return fmt.Errorf("resources/%s %s: %w", verb, uri, err)
	}
	return nil
}

// hear makes a change, once or until it is heard of.
func (r *legacyRound) hear(ctx context.Context, s *Step, want string) error {
	end := time.Now().Add(noticeTime)
	for try := 0; time.Now().Before(end); try++ {
		if s.Trigger != nil && (try == 0 || !s.Once) {
			if err := r.call(ctx, s.Trigger); err != nil {
				return fmt.Errorf("making a change: %w", err)
			}
		}
		for got, ok := r.Changed.Take(againTime); ok; got, ok = r.Changed.Take(againTime) {
			if got == want {
				return nil
			}
			if s.URI != "" && got != "tools" && got != "prompts" && got != "resources" {
				return fmt.Errorf("an update for %s arrived, want %s", got, want)
			}
		}
	}
	return fmt.Errorf("no change of %s within %v of making one", want, noticeTime)
}

func (r *legacyRound) unwatch(ctx context.Context, s *Step) error {
	r.Changed.Clear()
	for _, uri := range []string{s.URI, s.Other} {
		if err := r.subscribe(ctx, "subscribe", uri); err != nil {
			return err
		}
	}
	defer r.subscribe(context.WithoutCancel(ctx), "unsubscribe", s.Other)
	if err := r.subscribe(ctx, "unsubscribe", s.URI); err != nil {
		return err
	}
	if err := r.call(ctx, s.Trigger); err != nil {
		return fmt.Errorf("making changes: %w", err)
	}
	heard := r.Changed.Collect(1)
	for _, got := range heard {
		if got != s.Other {
			return fmt.Errorf("an update for %s arrived, want one for %s alone", got, s.Other)
		}
	}
	if len(heard) == 0 {
		return fmt.Errorf("no update for %s arrived", s.Other)
	}
	return nil
}

// gap expects to be subscribed: an event of the stream gave the client an id.
func (r *legacyRound) gap(ctx context.Context, s *Step) error {
	if err := r.subscribe(ctx, "subscribe", s.URI); err != nil {
		return err
	}
	defer r.subscribe(context.WithoutCancel(ctx), "unsubscribe", s.URI)
	r.Changed.Clear()
	if err := r.hear(ctx, s, s.URI); err != nil {
		return fmt.Errorf("before the gap: %w", err)
	}
	r.Changed.Clear()
	if n := r.cut(true); n == 0 {
		return errors.New("the client had no GET stream to cut")
	}
	once := *s
	once.Once = true
	if err := r.hear(ctx, &once, s.URI); err != nil {
		return fmt.Errorf("over the gap: %w", err)
	}
	return nil
}

func (r *legacyRound) resume(ctx context.Context, s *Step) error {
	r.Expect(s.Answers)
	before := r.resumed()
	run, err := r.Begin("tools/call", s.Params, true)
	if err != nil {
		return err
	}
	if _, ok := r.Progress.Take(answerTime); !ok {
		return errors.New("no progress to cut after")
	}
	if n := r.cut(false); n == 0 {
		return errors.New("the call had no stream to cut")
	}
	res, err := r.Wait(ctx, run)
	if err == nil && r.resumed() == before {
		err = errors.New("the answer came, but nobody asked for it with Last-Event-ID")
	}
	return r.judge(s, res, err)
}

func (r *legacyRound) cancel(ctx context.Context, s *Step) error {
	r.Expect(s.Answers)
	run, err := r.Begin("tools/call", s.Params, false)
	if err != nil {
		return err
	}
	if err := r.until(ctx, s.Before); err != nil {
		return fmt.Errorf("the call did not begin: %w", err)
	}
	if err := r.Send(&remote.Command{Method: remote.Cancel, Of: run.ID}); err != nil {
		return err
	}
	if res, err := r.Wait(ctx, run); err == nil {
		return fmt.Errorf("the call that was given up returned %s", match.Brief(res))
	}
	if err := r.until(ctx, s.Until); err != nil {
		return fmt.Errorf("the server did not hear of it: %w", err)
	}
	return nil
}

// until takes a step until it succeeds.
func (r *legacyRound) until(ctx context.Context, s *Step) (err error) {
	for end := time.Now().Add(noticeTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		res, err2 := r.Request(ctx, "tools/call", s.Params)
		if err = r.judge(s, res, err2); err == nil {
			return nil
		}
	}
	return err
}
