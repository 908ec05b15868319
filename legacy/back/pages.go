package back

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

var errPages = errors.New("the list has no end")

// pages iterates over the pages of a list, which it asks for. An error is the
// last.
//
// Spec: 2025-11-25, server/utilities/pagination.
func (s *session) pages(ctx context.Context, method string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var params []byte
		for range maxPages {
			page, err := s.Request(ctx, method, params)
			if !yield(page, err) || err != nil {
				return
			}
			cursor := wire.Get(page, "nextCursor")
			if cursor == nil || wire.IsNull(cursor) || string(cursor) == `""` {
				return
			}
			params = wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
		}
		yield(nil, errPages)
	}
}
