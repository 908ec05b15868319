package sse

import (
	"strconv"
	"strings"
	"time"
)

// reference is the result of reading a stream with a simple parser.
type reference struct {
	events []Event
	lastID string
	retry  time.Duration
}

// parseReference follows the steps of the HTML standard, section 9.2.6, on the
// whole stream at once, and shares no code with the Reader.
func parseReference(stream string) reference {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var ref reference
	var data, typ, id string
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			ref.lastID = id
			if data != "" {
				ref.add(typ, strings.TrimSuffix(data, "\n"), id)
			}
			data, typ = "", ""
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "data":
			data += value + "\n"
		case name == "event":
			typ = value
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		case name == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			ms, err := strconv.ParseInt(value, 10, 64)
			if ref.retry = time.Duration(ms) * time.Millisecond; err != nil || ref.retry/time.Millisecond != time.Duration(ms) {
				ref.retry = 9223372036854 * time.Millisecond
			}
		}
	}
	return ref
}

func (r *reference) add(typ, data, id string) {
	if typ == "" {
		typ = "message"
	}
	r.events = append(r.events, Event{Type: typ, Data: []byte(data), ID: id})
}
