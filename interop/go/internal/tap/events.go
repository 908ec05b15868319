package tap

import "bytes"

// An event is one of an event stream.
type event struct {
	name string
	id   string
	data []byte
}

// events cuts an event stream, which comes in pieces, into events.
type events struct {
	rest []byte // of the last piece, without a line's end
	next event
	some bool // next has data
}

// add takes the next piece and returns the events that it completes.
func (e *events) add(piece []byte) (done []event) {
	e.rest = append(e.rest, piece...)
	for {
		line, rest, ok := bytes.Cut(e.rest, []byte("\n"))
		if !ok {
			return done
		}
		e.rest = rest
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) > 0 {
			e.line(line)
			continue
		}
		if e.some {
			done = append(done, e.next)
		}
		e.next, e.some = event{}, false
	}
}

func (e *events) line(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.next.name = string(value)
	case "id":
		e.next.id = string(value)
	case "data":
		if e.some {
			e.next.data = append(e.next.data, '\n')
		}
		e.next.data, e.some = append(e.next.data, value...), true
	}
}
