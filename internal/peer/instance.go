package peer

import "strings"

// instanceLen is the length of an instance, in characters of rand.Text.
const instanceLen = 8

// OfSession returns the instance that a session's id names; empty if it names none.
func OfSession(id string) string {
	if len(id) > 1+instanceLen && id[0] == '1' && id[1+instanceLen] == '-' && isInstance(id[1:1+instanceLen]) {
		return id[1 : 1+instanceLen]
	}
	return ""
}

// OfState returns the instance that a requestState names, or the id of a task that it holds; empty
// if it names none.
func OfState(state string) string {
	rest, ok := strings.CutPrefix(state, "1.")
	if instance, _, dotted := strings.Cut(rest, "."); ok && dotted && isInstance(instance) {
		return instance
	}
	return ""
}
