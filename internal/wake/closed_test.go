package wake

import (
	"context"
	"errors"
	"testing"
)

func TestClosed(t *testing.T) {
	c := make(chan struct{})
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := Await(ctx, c); Closed(c) || err != late {
		t.Errorf("Closed() = %v, Await() = %v before it is closed, want false, %v", Closed(c), err, late)
	}
	close(c)
	if err := Await(t.Context(), c); !Closed(c) || err != nil {
		t.Errorf("Closed() = %v, Await() = %v after it was closed, want true, nil", Closed(c), err)
	}
}
