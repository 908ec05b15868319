package wire

import "bytes"

// LeadingID returns the id of a response or a request from the first bytes of the
// message. It finds the id only if it precedes the result or the params. start may end
// anywhere and need not be valid JSON.
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
		return ID{}, false // a later member may show that it is a request
	}
	return ID{}, false
}
