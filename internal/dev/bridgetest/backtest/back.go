package backtest

import (
	"context"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// CloseAfter closes a back at the end of the test.
func CloseAfter(t testing.TB, b interface {
	Close(ctx context.Context) error
}) {
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// Body returns the body of what Serve returned, and releases the result.
func Body(res *mcp.Result, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer res.Release()
	return string(res.Body), nil
}
