package wire

import "bytes"

// LeadingID returns the id that stands in the first bytes of a response, or of a
// request, if its members before the result or the params tell. start is cut off
// somewhere, and not checked.
func LeadingID(start []byte) (id ID, isRequest bool) {
	for cut := len(start); cut > 0; cut-- {
		if start[cut-1] != ',' {
			continue
		}
		head := append(append([]byte(nil), start[:cut-1]...), '}')
		if Check(head, 0) != nil {
			continue
		}
		id, _ = ParseID(Get(head, "id"))
		switch rest := bytes.TrimLeft(start[cut:], " \t\r\n"); {
		case Get(head, "method") != nil:
			return id, !id.IsZero()
		case bytes.HasPrefix(rest, []byte(`"result"`)), bytes.HasPrefix(rest, []byte(`"error"`)):
			return id, false
		}
		return ID{}, false // a member that comes later may say that it is a request
	}
	return ID{}, false
}
