package front

import (
	"strconv"
	"strings"
)

// An eventID says which event of a session was sent last: the stream's number and the
// event's in it.
type eventID struct {
	stream, event uint64
}

// text returns the id as clients know it. Instance tells gateways apart, which number
// alike.
func (e eventID) text(instance string) string {
	return idVersion + "." + instance + "." + strconv.FormatUint(e.stream, 10) + "." + strconv.FormatUint(e.event, 10)
}

// parseEventID reads an id that text made. An event has one spelling: numbers with
// zeros before them are not ours.
func parseEventID(instance, id string) (e eventID, ok bool) {
	numbers, ok := strings.CutPrefix(id, idVersion+"."+instance+".")
	if !ok {
		return eventID{}, false
	}
	stream, event, _ := strings.Cut(numbers, ".")
	var err, err2 error
	e.stream, err = strconv.ParseUint(stream, 10, 64)
	e.event, err2 = strconv.ParseUint(event, 10, 64)
	if err != nil || err2 != nil || e.text(instance) != id {
		return eventID{}, false
	}
	return e, true
}
