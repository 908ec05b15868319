package link

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A RevisionMismatch reports that a server answered initialize with a revision that is not
// legacy.
type RevisionMismatch struct {
	Server   string
	Answered string
}

func (e *RevisionMismatch) Error() string {
	return fmt.Sprintf("server %q answered initialize with revision %q, want one of %q",
		e.Server, e.Answered, spec.Revisions(spec.Legacy))
}

// Usable reports whether the server may be used all the same: it answered with a known
// revision that has no initialize, or with none.
func (e *RevisionMismatch) Usable(known *quirks.Recorder) bool {
	answered := spec.Revision(e.Answered)
	return (e.Answered == "" || answered.Known() && answered.Era() == spec.Modern) && known.Tolerates(quirks.ServerRevision)
}

// IsBadRequest reports whether an error may be that of a status 400.
func IsBadRequest(err error) bool {
	var refused *wire.Error
	var status *upstream.StatusError
	return errors.As(err, &refused) || errors.As(err, &status) && status.Code == http.StatusBadRequest
}
