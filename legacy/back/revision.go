package back

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

// A revisionMismatch reports that a server answered initialize with a revision that is not
// legacy.
type revisionMismatch struct {
	server string
	got    string
}

func (e *revisionMismatch) Error() string {
	return fmt.Sprintf("server %q answered initialize with revision %q, want one of %q",
		e.server, e.got, spec.Revisions(spec.Legacy))
}

// usable reports whether the server may be used all the same: it answered with a known
// revision that has no initialize, or with none.
func (e *revisionMismatch) usable(o *Options) bool {
	answered := spec.Revision(e.got)
	return (e.got == "" || answered.Known() && answered.Era() == spec.Modern) && o.Quirks.Tolerates(quirks.ServerRevision)
}

// A headerRefused reports that a server answered with 400 what names the revision that it
// answered initialize with. The refusal is not in its chain, because it does not answer the
// client's request.
type headerRefused struct{ refusal string }

func (e *headerRefused) Error() string { return e.refusal }

// prove reports whether a server that answered initialize with another revision can be used: a
// list, or a ping, has to work. failed is the error of the message before; nil for none.
func (s *session) prove(ctx context.Context, failed error) error {
	err := failed
	if err == nil && s.caps.Declares(spec.MethodToolsList) {
		_, err = s.Request(ctx, spec.MethodToolsList, nil)
	}
	if refused := (*wire.Error)(nil); err == nil && !s.caps.Declares(spec.MethodToolsList) || errors.As(err, &refused) {
		_, err = s.Request(ctx, spec.MethodPing, nil)
	}
	switch {
	case err == nil:
		s.opts.Quirks.Met(quirks.ServerRevision, "")
		return nil
	case s.Attributes() && s.named != s.revision && isBadRequest(err):
		return &headerRefused{err.Error()}
	}
	return fmt.Errorf("%w; used as one of %s it fails: %v", &revisionMismatch{s.opts.Name, s.answered}, s.revision, err)
}

// isBadRequest reports whether an error may be that of a status 400.
func isBadRequest(err error) bool {
	var refused *wire.Error
	var status *upstream.StatusError
	return errors.As(err, &refused) || errors.As(err, &status) && status.Code == http.StatusBadRequest
}

// openNaming opens a session with a server that may answer initialize with a revision that has
// none: further requests name that, or what works if the server has refused it.
func (b *Back) openNaming(ctx context.Context, p mcp.Profile, connect connector) (*session, error) {
	s, err := b.openOver(ctx, p, connect)
	if refused := (*headerRefused)(nil); errors.As(err, &refused) {
		b.namesLegacy.Store(true)
		return b.openOver(ctx, p, connect)
	}
	return s, err
}

// noteRelayed counts a server whose answer to a client's own initialize is passed on although
// it names a revision that has none.
func (b *Back) noteRelayed(r *relay.Session) {
	if n, err := readNegotiated(&b.opts, wire.Get(r.Answer(), "result")); err == nil && n.isOdd() {
		b.opts.Quirks.Met(quirks.ServerRevision, "")
	}
}
