package eventstream

import (
	"strconv"
	"strings"
)

// version begins every id, so that a later form can be told from this one.
const version = "1"

// An ID says which event of a session was sent last: the stream's number and the
// event's in it.
type ID struct {
	Stream, Event uint64
}

// Text returns the id as clients know it. Instance tells gateways apart, which number
// alike.
func (e ID) Text(instance string) string {
	return version + "." + instance + "." + strconv.FormatUint(e.Stream, 10) + "." + strconv.FormatUint(e.Event, 10)
}

// ParseID reads an id that Text made. An event has one spelling: numbers with
// zeros before them are not ours.
func ParseID(instance, id string) (e ID, ok bool) {
	numbers, ok := strings.CutPrefix(id, version+"."+instance+".")
	if !ok {
		return ID{}, false
	}
	stream, event, _ := strings.Cut(numbers, ".")
	var err, err2 error
	e.Stream, err = strconv.ParseUint(stream, 10, 64)
	e.Event, err2 = strconv.ParseUint(event, 10, 64)
	if err != nil || err2 != nil || e.Text(instance) != id {
		return ID{}, false
	}
	return e, true
}
