package peer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// BeatPath is where a replica is asked to write a heartbeat of another one.
	BeatPath = "/peer/beat"
	// engineHeader says, in an answer to that, that the engine is away for this replica, too.
	engineHeader = "Mcpbridge-Engine"
	engineAway   = "away"
	// beatTimeout bounds writing the heartbeat: who has asked waits for a heartbeat's time, and
	// has to hear of an engine that does not answer.
	beatTimeout = 3 * replicas.Heartbeat / 5
	// knownHeader says in that answer whom this replica knows: instances by comma.
	knownHeader = "Mcpbridge-Replicas"

	// HoldsPath is where a replica is asked whether it holds a name, of which claimQuery is the key.
	HoldsPath  = "/peer/holds"
	claimQuery = "claim"
	// epochHeader says in the answer in which epoch it does; 0 if it does not.
	epochHeader = "Mcpbridge-Epoch"
)

// Greet implements [replicas.Neighbors].
func (g *Group) Greet(ctx context.Context, to replicas.Replica) error {
	t := g.gates.of(g, to)
	if t.answers(ctx, time.Now().Add(-dialEvery)) {
		return nil
	}
	return cmp.Or(t.closed(), error(&SilentError{to.Instance}))
}

// Tell implements [replicas.Neighbors].
func (g *Group) Tell(ctx context.Context, to replicas.Replica, record []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL(to, BeatPath), bytes.NewReader(record))
	if err != nil {
		return err
	}
	resp, err := g.tellHeaders(to, r)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil
	case resp.Header.Get(engineHeader) == engineAway:
		away := &replicas.AwayError{Err: replicas.ErrAway}
		if known := resp.Header.Get(knownHeader); known != "" { // replicas of earlier versions say nothing
			away.Knows = strings.Split(known, ",")
		}
		return away
	}
	return fmt.Errorf("replica %s has not written a heartbeat: %s", to.Instance, resp.Status)
}

// Ask implements [replicas.Neighbors].
func (g *Group) Ask(ctx context.Context, to replicas.Replica, key string) (epoch uint64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL(to, HoldsPath+"?"+claimQuery+"="+url.QueryEscape(key)), nil)
	if err != nil {
		return 0, err
	}
	resp, err := g.tellHeaders(to, r)
	if err != nil {
		return 0, err
	}
	epoch, err = strconv.ParseUint(resp.Header.Get(epochHeader), 10, 64)
	if err != nil || resp.StatusCode != http.StatusNoContent { // also of one that does not know the question
		return 0, fmt.Errorf("replica %s has not said whether it holds a claim: %s", to.Instance, resp.Status)
	}
	return epoch, nil
}

// tellHeaders sends a request whose answer is its status and headers. The error wraps ErrGone if
// another replica answers.
func (g *Group) tellHeaders(to replicas.Replica, r *http.Request) (*http.Response, error) {
	resp, err := g.RoundTripper(to, nil).RoundTrip(r)
	if gone := (*GoneError)(nil); errors.As(err, &gone) && gone.Replaced { // refusing a connect is no proof
		return nil, fmt.Errorf("%w: %w", replicas.ErrGone, err)
	}
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close() // nothing in it is read
	return resp, nil
}

// ServeHolds says whether this replica holds a name. The envelope of the request was opened.
func (g *Group) ServeHolds(w http.ResponseWriter, r *http.Request, e *Envelope) {
	epoch, err := g.engine.Holds(r.URL.Query().Get(claimQuery))
	if err != nil {
		g.log.Debug("another replica was not told whether this one holds a claim", "replica", e.From, "err", err)
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set(epochHeader, strconv.FormatUint(epoch, 10))
	w.WriteHeader(http.StatusNoContent)
}

// ServeBeat writes the heartbeat of a replica that can't reach the engine. Its envelope was
// opened.
func (g *Group) ServeBeat(w http.ResponseWriter, r *http.Request, e *Envelope) {
	record, err := io.ReadAll(http.MaxBytesReader(w, r.Body, replicas.MaxMember))
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), beatTimeout)
		defer cancel()
		err = g.engine.TellFor(ctx, e.From, record)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, replicas.ErrAway):
		w.Header().Set(engineHeader, engineAway)
		if away := (*replicas.AwayError)(nil); errors.As(err, &away) {
			w.Header().Set(knownHeader, strings.Join(away.Knows, ","))
		}
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
	default:
		g.log.Warn("a heartbeat of another replica was not written", "replica", e.From, "err", err)
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
	}
}

var _ replicas.Neighbors = (*Group)(nil)
