package link

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// answerPauses are between tries to send an answer.
var answerPauses = wake.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// SendAnswer sends the response to a request of the server, which waits for it: again while the
// server can't be reached or has no room, until ctx ends. A response that may have arrived is sent
// again only while isFree says that the server has not used its id for another request. The error
// says why the server will not have it.
func SendAnswer(ctx context.Context, l *Link, frame []byte, isFree func() bool) error {
	for failures := 0; ; failures++ {
		err := l.Send(ctx, frame)
		if err == nil || ctx.Err() != nil || refuses(err) || !l.Alive() {
			return err
		}
		if failures == 0 {
			l.log.Warn("a response did not reach the server, and is sent again", "error", transport.Cause(err))
		}
		if wake.Wait(ctx, wake.Jitter(answerPauses.After(failures))) != nil {
			return err
		}
		if !isFree() {
			return nil // it has the response: an id is not used twice before
		}
	}
}

// refuses reports whether an error of Send is the server's last word.
func refuses(err error) bool {
	var status *upstream.StatusError
	return errors.As(err, &status) && !putsOff(status.Code)
}
