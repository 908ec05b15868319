package eventstream

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// A rig is the streams of a session, and what became of them.
type rig struct {
	*Streams
	counts bridgetest.Counts
	ending chan struct{}
	expire func(reason error) // ends the credential of the last response
}

func newRig(maxStored int) *rig {
	r := &rig{ending: make(chan struct{})}
	r.Streams = New(&Options{
		Instance: "inst", MaxStored: maxStored, KeepAlive: time.Hour, Ending: r.ending, Logger: slog.New(slog.DiscardHandler),
		Until: func(_ *mcp.Identity, end func(error)) func() { r.expire = end; return func() {} },
		Limit: r.counts.Add,
	}, "s1", func() { r.counts.Add("stuck") })
	return r
}

// A reader is the response that carries a stream, in a bubble.
type reader struct {
	t    *testing.T
	w    *httptest.ResponseRecorder
	over chan error // why it ended
	read int        // bytes
	last string     // the last event's id
}

// attach has a response carry a stream, from after an event, until it ends or leave is
// called.
func attach(t *testing.T, st *Stream, from uint64, changes *Changes) (rd *reader, leave func()) {
	ctx, leave := context.WithCancel(t.Context())
	rd = &reader{t: t, w: httptest.NewRecorder(), over: make(chan error, 1)}
	var here *downstream.Streams
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	go here.Serve(rd.w, r, time.Minute, func(ctx context.Context, res *downstream.Response) func() { // ends with ctx
		w := st.Attach(res, from, changes)
		defer w.Until(nil)()
		err := w.Run(ctx)
		w.Close(err)
		rd.over <- err
		return nil
	})
	synctest.Wait()
	return rd, leave
}

// resume attaches after the last event that another response had.
func (r *rig) resume(t *testing.T, id string, changes *Changes) (rd *reader, leave func()) {
	t.Helper()
	st, from := r.Find(id)
	if st == nil {
		t.Fatalf("Find(%q) = no stream", id)
	}
	return attach(t, st, from, changes)
}

var eventLines = regexp.MustCompile(`(?m)^(id|data): (.*)$`)

// want waits, and compares what was written since with want: the data of events.
func (rd *reader) want(want string) {
	rd.t.Helper()
	synctest.Wait()
	text := rd.w.Body.String()[rd.read:]
	rd.read += len(text)
	var got []string
	for _, m := range eventLines.FindAllStringSubmatch(text, -1) {
		if m[1] == "id" {
			rd.last = m[2]
		} else {
			got = append(got, m[2])
		}
	}
	if all := strings.Join(got, " "); all != want {
		rd.t.Errorf("events %s, want %s", all, want)
	}
}

// ends wants the response to have ended for a reason.
func (rd *reader) ends(why error) {
	rd.t.Helper()
	synctest.Wait()
	select {
	case err := <-rd.over:
		if err != why {
			rd.t.Errorf("the response ended with %v, want %v", err, why)
		}
	default:
		rd.t.Errorf("the response goes on, want it to end with %v", why)
	}
}
