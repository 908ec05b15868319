package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxPages limits the pages of a list that the gateway reads for itself.
const maxPages = 1000

var errEndless = errors.New("the list has no end")

// Pages iterates over the pages of a list, which request fetches. If there is an error, it
// is the last value.
//
// Spec: 2025-11-25, server/utilities/pagination.
func Pages(ctx context.Context, method string, request func(ctx context.Context, method string, params []byte) (json.RawMessage, error)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var params []byte
		for range maxPages {
			page, err := request(ctx, method, params)
			if !yield(page, err) || err != nil {
				return
			}
			cursor := wire.Get(page, "nextCursor")
			if cursor == nil || wire.IsNull(cursor) || string(cursor) == `""` {
				return
			}
			params = wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
		}
		yield(nil, errEndless)
	}
}
