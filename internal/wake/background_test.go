package wake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What runs in the background ends with Close, which waits for it, and nothing starts after it.
func TestBackgroundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ended := NewBackground(), false
		g.Start(func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
		})
		if g.Close(); !ended {
			t.Error("Close did not wait")
		}
		g.Start(func(context.Context) { t.Error("it runs after Close") })
		synctest.Wait()
	})
}
