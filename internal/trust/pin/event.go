package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

// An Event is what becomes of definitions, for the audit log.
type Event struct {
	Tool    string // empty for all tools of the server
	Digest  string // of the definition, or of all that are accepted
	What    string
	Refused bool
}

// tell tells of an event, if anybody wants to know.
func (p *Pins) tell(e Event) {
	if p.opts.Told != nil {
		p.opts.Told(e)
	}
}

// digest returns a digest of all accepted definitions.
func (f *File) digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f.Tools)) {
		h.Write([]byte(name))
		for _, d := range f.Tools[name].Digests {
			h.Write([]byte("\x00" + d))
		}
		h.Write([]byte{'\n'})
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
