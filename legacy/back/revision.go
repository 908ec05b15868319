package back

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

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
	case s.Attributes() && s.named != s.revision && link.IsBadRequest(err):
		return &headerRefused{err.Error()}
	}
	return fmt.Errorf("%w; used as one of %s it fails: %v", &link.RevisionMismatch{Server: s.opts.Name, Answered: s.answered}, s.revision, err)
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
