package back

import "time"

// Bounds of legacy/link, as tests of whole sessions meet them.
const (
	streamWait      = 2 * time.Second        // of the handshake, for the GET stream
	maxMissed       = 30 * time.Second       // of a session, for a server that is gone
	emptyStreams    = 3                      // before the pauses between them grow
	acceptedTimeout = 5 * time.Second        // for an answer elsewhere, of a call that was accepted
	tailTimeout     = 100 * time.Millisecond // for the end of a stream after the response
)
