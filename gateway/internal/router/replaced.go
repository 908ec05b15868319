package router

import "fmt"

// A replacedError is why a server is served no more.
type replacedError struct {
	server  string
	removed bool // there is no other of its name
	anew    bool // it is the same, begun anew
}

func (e *replacedError) Error() string {
	switch {
	case e.removed:
		return fmt.Sprintf("server %q was removed from the gateway's configuration; use another server", e.server)
	case e.anew:
		return fmt.Sprintf("server %q was restarted; connect again", e.server)
	}
	return fmt.Sprintf("server %q was changed in the gateway's configuration; connect again", e.server)
}
