package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// startPoll is how often a member that is starting is asked for its description.
	startPoll = 50 * time.Millisecond
	// maxInstructions bounds the instructions of one member, in bytes.
	maxInstructions = 8 << 10
)

// A describer describes a group by what its members say of themselves, each time that it is asked.
type describer struct {
	opts       *Options
	roster     *roster
	background *wake.Background
	asked      []atomic.Bool // the members that are asked in the background, by place
}

// A described is the description of a member, or why there is none.
type described struct {
	of  *MemberOptions
	err error
	*mcp.Description
}

// describe implements [mcp.Describer]. It returns once all members have described themselves,
// with patience. As long as one has not, the group has all that it may have, since no client hears
// of what is added later.
//
// Spec: 2026-07-28, server/discover; 2025-11-25, basic/lifecycle, Initialization.
func (r *describer) describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	all := r.all(ctx, req)
	for i := range all {
		if ctx.Err() == nil && isComing(all[i].err) {
			r.later(req, i)
		}
	}
	if err := r.judge(ctx, all); err != nil {
		return nil, err
	}
	d := &mcp.Description{Capabilities: capabilities(all), ServerInfo: r.opts.ServerInfo, Instructions: r.instructions(all)}
	for i, m := range all {
		switch {
		case m.Description == nil:
			d.Cache = mcp.CacheHint{}
			return d, nil
		case i == 0:
			d.Cache = m.Cache
		default:
			d.Cache = d.Cache.Tightest(m.Cache)
		}
	}
	return d, nil
}

// all asks all members at the same time for their descriptions. If ctx has ended, it
// returns what is known.
func (r *describer) all(ctx context.Context, req *mcp.Request) []described {
	all := make([]described, len(r.roster.names))
	var asked sync.WaitGroup
	for i := range all {
		all[i].of = &r.opts.Members[i]
		if ctx.Err() != nil {
			all[i].Description, all[i].err = r.one(ctx, req, i)
			continue
		}
		asked.Go(func() { all[i].Description, all[i].err = r.one(ctx, req, i) }) // ends with its time
	}
	asked.Wait()
	return all
}

// one returns the description of a member, for which it waits with patience while the
// member is starting.
func (r *describer) one(ctx context.Context, req *mcp.Request, i int) (*mcp.Description, error) {
	if ctx.Err() != nil {
		m, err := r.roster.at(i)
		if err != nil {
			return nil, err
		}
		return m.Describe(ctx, req)
	}
	return r.await(ctx, r.opts.Patience, req, i)
}

// later goes on asking a member that has not described itself in time: what it says is
// remembered for the next run, whose first client need not wait then.
func (r *describer) later(req *mcp.Request, i int) {
	if r.asked[i].Swap(true) {
		return
	}
	asks := *req // without its texts, which need not stay
	asks.Params, asks.Extra, asks.ParamHeaders, asks.Observed = nil, nil, nil, mcp.Observed{}
	r.background.Start(func(ctx context.Context) { // ends within StartPatience
		defer r.asked[i].Store(false)
		_, _ = r.await(ctx, r.opts.StartPatience, &asks, i) // nobody waits for it
	})
}

// isComing reports whether a member that was not described may be soon.
func isComing(err error) bool {
	return errors.Is(err, mcp.ErrStarting) || errors.As(err, new(*silentError))
}

// await returns the description of a member, for which it waits while the member is
// starting.
func (r *describer) await(ctx context.Context, patience time.Duration, req *mcp.Request, i int) (*mcp.Description, error) {
	w, cancel := wait(ctx, patience)
	defer cancel()
	for {
		m, err := r.roster.at(i)
		if err == nil {
			var d *mcp.Description
			if d, err = m.Describe(w.ctx, req); err == nil {
				return d, nil
			}
		}
		if !errors.Is(err, mcp.ErrStarting) || wake.Wait(w.ctx, startPoll) != nil {
			return nil, w.why(err)
		}
	}
}

// judge returns an error if no member can be described, and none is on its way, or
// if none may be left out.
func (r *describer) judge(ctx context.Context, all []described) error {
	var why []string
	coming := false
	for _, m := range all {
		if m.err == nil {
			continue
		}
		coming = coming || isComing(m.err)
		why = append(why, fmt.Sprintf("server %q: %s", m.of.Name, mcp.WireError(m.err).Message))
	}
	switch {
	case len(why) == 0:
		return nil
	case len(all) == 1 && !coming:
		return all[0].err
	case ctx.Err() != nil && len(why) == len(all):
		return context.Cause(ctx)
	case r.opts.Require, len(why) == len(all) && !coming:
		return mcp.RefuseForNow("group %q is not ready: %s; try again later", r.opts.Name, strings.Join(why, "; "))
	}
	return nil
}

// features are the capabilities of the specification that a group has if one member does.
var features = []string{"tools", "prompts", "resources", "completions", "logging"}

// changing are those of which the group says that they change: members come and go.
var changing = []string{"tools", "prompts", "resources"}

// capabilities returns what the members have together.
func capabilities(all []described) []byte {
	whole := !slices.ContainsFunc(all, func(m described) bool { return m.Description == nil })
	var edits []wire.Edit
	for _, name := range features {
		if v := feature(all, name, !whole); v != nil {
			edits = append(edits, wire.Edit{Name: name, Value: v})
		}
	}
	for _, name := range []string{"experimental", "extensions"} {
		if v := wire.AppendEdited(nil, nil, agreed(all, name)...); len(v) > len("{}") {
			edits = append(edits, wire.Edit{Name: name, Value: v})
		}
	}
	skip := slices.Concat(features, []string{"experimental", "extensions", "tasks"}) // tasks of 2025-11-25 are a session's
	for _, e := range agreed(all, "") {
		if !slices.Contains(skip, e.Name) {
			edits = append(edits, e)
		}
	}
	return wire.AppendEdited(nil, nil, edits...)
}

// feature returns what all members have of a capability; nil if they don't have it. With may, one
// whose capabilities are not known has it as well.
func feature(all []described, name string, may bool) []byte {
	var parts []wire.Edit
	has := may
	for _, m := range all {
		if m.Description == nil || !mcp.Declares(m.Capabilities, name) {
			continue
		}
		has = true
		for k, v := range wire.Members(wire.Get(m.Capabilities, name)) {
			i := slices.IndexFunc(parts, func(e wire.Edit) bool { return k.Is(e.Name) })
			if i < 0 {
				parts = append(parts, wire.Edit{Name: k.String(), Value: v})
			} else if string(v) == "true" {
				parts[i].Value = v
			}
		}
	}
	if !has {
		return nil
	}
	object := wire.AppendEdited(nil, nil, parts...)
	if slices.Contains(changing, name) {
		object = wire.AppendEdited(nil, object, wire.Edit{Name: "listChanged", Value: []byte("true")})
	}
	if name == "resources" && may {
		object = wire.AppendEdited(nil, object, wire.Edit{Name: "subscribe", Value: []byte("true")})
	}
	return object
}

// agreed returns the members of a capability, or with an empty name of all capabilities, on which
// all who have them agree.
func agreed(all []described, name string) (edits []wire.Edit) {
	disputed := make(map[string]bool)
	for _, m := range all {
		if m.Description == nil {
			continue
		}
		object := []byte(m.Capabilities)
		if name != "" {
			object = wire.Get(object, name)
		}
		for k, v := range wire.Members(object) {
			i := slices.IndexFunc(edits, func(e wire.Edit) bool { return k.Is(e.Name) })
			switch {
			case wire.IsNull(v):
			case i < 0:
				edits = append(edits, wire.Edit{Name: k.String(), Value: v})
			case !bytes.Equal(wire.AppendCanonical(nil, v), wire.AppendCanonical(nil, edits[i].Value)):
				disputed[k.String()] = true
			}
		}
	}
	return slices.DeleteFunc(edits, func(e wire.Edit) bool { return disputed[e.Name] })
}

// instructions returns those of the configuration, or else those of the members, each under its
// name; nil if there are none.
func (r *describer) instructions(all []described) []byte {
	if r.opts.Instructions != "" {
		return wire.Quote(r.opts.Instructions)
	}
	var blocks []string
	for _, m := range all {
		if m.Description == nil {
			continue
		}
		text := strings.TrimSpace(wire.Unquote(m.Instructions))
		if text == "" {
			continue
		}
		head := "## " + m.of.Name
		if !r.opts.Bare {
			head += "\n\nIts names begin with " + m.of.Prefix + names.Divider + "."
		}
		blocks = append(blocks, head+"\n\n"+mcp.Truncate(text, maxInstructions))
	}
	if blocks == nil {
		return nil
	}
	return wire.Quote(strings.Join(blocks, "\n\n"))
}
