package peer

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A muteEngine answers nothing, as one does none of whose servers leads.
type muteEngine struct{ replicas.Engine }

func (muteEngine) TellFor(ctx context.Context, _ string, _ []byte) error {
	select {
	case <-ctx.Done():
	case <-time.After(replicas.Heartbeat): // its own patience
	}
	return replicas.ErrAway
}

// Who asks for a heartbeat hears that the engine does not answer while it waits for that: it takes
// no answer for a replica that may take what it holds.
func TestBeatAtAMuteEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Options{Engine: muteEngine{replicastest.Alone(edge)}, Keys: []string{testKey}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		begun, w := time.Now(), httptest.NewRecorder()
		g.ServeBeat(w, httptest.NewRequestWithContext(t.Context(), "POST", BeatPath, strings.NewReader("{}")), &Envelope{From: "BBBBBBBB"})
		if took := time.Since(begun); took > replicas.Heartbeat*3/4 || w.Header().Get(engineHeader) != engineAway {
			t.Errorf("the answer is %d %v after %v, want %s: %s within %v", w.Code, w.Header(), took, engineHeader, engineAway, replicas.Heartbeat*3/4)
		}
	})
}
