package wire

import "bytes"

const space = " \t\r\n"

// OuterID returns the id of a response or a request from the first and the last bytes of the
// message, of which a part between them is not known. It finds the id only if it precedes the
// result or the params, or is the last member, behind which jsonrpc may stand. start may end
// anywhere, and end begin anywhere; end is empty if the end of the message is not known.
func OuterID(start, end []byte) (id ID, isRequest bool) {
	head, rest := leading(start)
	isRequest = head != nil && Get(head, "method") != nil || firstIs(rest, "method")
	if !isRequest && !firstIs(rest, "result") && !firstIs(rest, "error") {
		return ID{}, false // a later member may show that it is a request
	}
	if head != nil {
		id, _ = ParseID(Get(head, "id"))
	}
	if id.IsZero() {
		id = lastID(end)
	}
	return id, isRequest && !id.IsZero()
}

// leading returns the first members of an object that begins with start, as an object; nil if
// none is whole. rest begins with the next member.
func leading(start []byte) (head, rest []byte) {
	for cut := len(start); cut > 0; cut-- {
		if start[cut-1] != ',' {
			continue
		}
		head = append(append([]byte(nil), start[:cut-1]...), '}')
		if Check(head, 0) == nil {
			return head, start[cut:]
		}
	}
	rest, _ = bytes.CutPrefix(bytes.TrimLeft(start, space), []byte("{"))
	return nil, rest
}

// firstIs reports whether the first member of rest is name.
func firstIs(rest []byte, name string) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(rest, space), Quote(name))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, space), []byte(":"))
}

// lastID returns the id among the last members of an object that ends with text. It reads
// backwards from the brace at the end, which is in no string and no other value, and so are the
// members before it, as long as they have neither objects nor arrays in them. A text that looks
// like them is thus never taken for them.
func lastID(text []byte) ID {
	text, ok := cutLast(text, '}')
	for ok {
		var key, value []byte
		if text, value, ok = cutScalar(text); ok {
			text, ok = cutLast(text, ':')
		}
		if ok {
			text, key, ok = cutScalar(text)
		}
		if ok {
			text, ok = cutLast(text, ',')
		}
		switch {
		case !ok:
		case string(key) == `"id"`:
			id, _ := ParseID(value)
			return id
		case string(key) != `"jsonrpc"`:
			return ID{}
		}
	}
	return ID{}
}

// cutLast returns text without b at its end.
func cutLast(text []byte, b byte) (rest []byte, ok bool) {
	return bytes.CutSuffix(bytes.TrimRight(text, space), []byte{b})
}

// cutScalar returns text without the string or the number at its end, of which the beginning must
// be in text.
func cutScalar(text []byte) (rest, value []byte, ok bool) {
	text = bytes.TrimRight(text, space)
	from := len(bytes.TrimRight(text, "+-.0123456789Ee"))
	if bytes.HasSuffix(text, []byte{'"'}) {
		from--
		for from = bytes.LastIndexByte(text[:from], '"'); from > 0 && isEscaped(text, 0, from); {
			from = bytes.LastIndexByte(text[:from], '"')
		}
	}
	// What stands before it shows that the quotation mark is none of the string.
	if from <= 0 || text[from-1] == '\\' || Check(text[from:], 0) != nil {
		return text, nil, false
	}
	return text[:from], text[from:], true
}
