package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxPages bounds the pages of a list.
const maxPages = 1000

var errPages = errors.New("the list has no end")

// A Listing holds the items of one list of a server.
type Listing struct {
	Method string
	Items  []json.RawMessage // the items up to the error, if any
	Pages  int
	Err    error // nil if Items is complete

	Missing    bool // a page had no list, or null
	NullCursor bool // a page had null as its nextCursor
}

// lists are the methods that list tools, prompts and resources.
var lists = []string{spec.MethodToolsList, spec.MethodPromptsList, spec.MethodResourcesList, spec.MethodResourcesTemplates}

// List requests the lists that a server's capabilities declare, each within bound, and
// returns them with the steps of the probe.
func (p Probing) List(ctx context.Context, capabilities []byte, bound time.Duration,
	ask func(ctx context.Context, method string, params []byte) (json.RawMessage, error),
) ([]Listing, []Step) {
	var all []Listing
	var steps []Step
	for _, method := range lists {
		if v := wire.Get(capabilities, spec.Capability(method)); v == nil || wire.IsNull(v) {
			continue
		}
		found := Listing{Method: method}
		steps = append(steps, p.Take(method, func() (answer, means string) {
			ctx, cancel := context.WithTimeout(ctx, bound)
			defer cancel()
			found.read(ctx, spec.Array(method), ask)
			return found.text(spec.Array(method)), ""
		}))
		all = append(all, found)
	}
	return all, steps
}

// read requests one page after the other.
//
// Spec: 2026-07-28, server/utilities/pagination.
func (l *Listing) read(ctx context.Context, member string, ask func(context.Context, string, []byte) (json.RawMessage, error)) {
	params := []byte("{}")
	for range maxPages {
		page, err := ask(ctx, l.Method, params)
		if err != nil {
			l.Err = err
			return
		}
		l.Pages++
		list, cursor := wire.Get(page, member), wire.Get(page, "nextCursor")
		l.Missing = l.Missing || list == nil || wire.IsNull(list)
		l.NullCursor = l.NullCursor || wire.IsNull(cursor)
		for item := range wire.Elements(list) {
			l.Items = append(l.Items, bytes.Clone(item))
		}
		if cursor == nil || wire.IsNull(cursor) || string(cursor) == `""` {
			return
		}
		params = wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
	}
	l.Err = errPages
}

func (l *Listing) text(member string) string {
	text := fmt.Sprintf("%d %s", len(l.Items), member)
	if l.Pages > 1 {
		text += fmt.Sprintf(" on %d pages", l.Pages)
	}
	if l.Err != nil {
		text += fmt.Sprintf(", then: %v", l.Err)
	}
	return text
}
