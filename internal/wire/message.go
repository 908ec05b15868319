package wire

import (
	"encoding/json"
	"fmt"
	"sync"
)

// A Kind is the kind of a message.
type Kind uint8

// The kinds of message.
const (
	Request Kind = iota + 1
	Notification
	Response
)

// A Message is one JSON-RPC message. Its byte slices alias the text from which it was
// parsed.
type Message struct {
	ID     ID     // zero for a notification, and for an error without a request
	Method string // empty for a response

	Params json.RawMessage // an object, or nil if absent
	Meta   json.RawMessage // _meta of Params, or nil
	Result json.RawMessage // nil unless the response is a success
	Error  *Error          // nil unless the response is a failure

	// Extra holds the members that JSON-RPC does not define, as they were written, joined
	// by commas: "a":1,"b":2. They are forwarded.
	Extra []byte

	// Outline describes Params or Result, so that a large object is scanned only once. It
	// is nil for a small message.
	Outline *Outline
	// Plain is that of Params, if Parse was to look for duplicates in it.
	Plain Plain

	// Text is the parsed text; nil if the Message was not made by Parse.
	Text []byte

	// NullParams says that the message has "params": null, and was parsed all the same.
	NullParams bool

	nullID bool // the message has "id": null
}

// Kind returns the kind of m.
func (m *Message) Kind() Kind {
	switch {
	case m.Method == "":
		return Response
	case m.ID.IsZero():
		return Notification
	}
	return Request
}

// An Error is a JSON-RPC error, and a Go error whose text is its message.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Errorf returns an Error with a formatted message and no data.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// An EnvelopeError reports that a text is JSON, but not a JSON-RPC message that MCP
// allows.
type EnvelopeError struct {
	Reason string
}

func (e *EnvelopeError) Error() string { return "invalid JSON-RPC message: " + e.Reason }

func invalid(format string, args ...any) error {
	return &EnvelopeError{fmt.Sprintf(format, args...)}
}

// Options set the limits of Parse.
type Options struct {
	// MaxDepth bounds nesting; zero means [DefaultMaxDepth].
	MaxDepth int
	// UniqueParams makes Parse refuse duplicate member names in params and params._meta,
	// not only in the envelope. Fronts set it: the member they check and the member the
	// upstream server uses must be the same.
	UniqueParams bool
	// NullParams makes Parse take params that are null for missing ones.
	NullParams bool
}

// Parse reads one message. It returns a [*SyntaxError] if data is not strict JSON, and an
// [*EnvelopeError] if it is not a message. With an EnvelopeError, the Message holds the
// id and the method if they could be read, for use in the error response. A batch is an
// EnvelopeError: see [IsArray].
func Parse(data []byte, opts Options) (Message, error) {
	var m Message
	p := parsers.Get().(*parser)
	err := m.parse(p, data, opts)
	*p = parser{} // so that the pool does not keep data alive
	parsers.Put(p)
	return m, err
}

// Salvage returns the id and the method of a message that Parse has refused, if they can
// be read. It accepts invalid UTF-8 and control characters in strings, and any error in
// other members of the envelope. Use nothing else of such a message.
func Salvage(data []byte) (id ID, method string) {
	c := checker{data: data, depth: DefaultMaxDepth, anyString: true}
	if c.text(nil) != nil || !IsObject(data) {
		return ID{}, ""
	}
	id, err := ParseID(Get(data, "id"))
	if err != nil {
		id = ID{}
	}
	if m := Get(data, "method"); len(m) > 2 {
		method = string(m)
	}
	return id, method
}

// A parser is the state of Parse. It comes from a pool, because it would enlarge the
// stack of a goroutine that parses one message and then serves a stream for hours.
type parser struct {
	checker
	recorder
	envelope Outline
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

func (m *Message) parse(p *parser, data []byte, opts Options) error {
	p.checker = checker{data: data, depth: opts.MaxDepth}
	if p.depth <= 0 {
		p.depth = DefaultMaxDepth
	}
	if err := p.text(&p.recorder); err != nil {
		return err
	}
	if !IsObject(data) {
		return invalid("want one object")
	}
	p.envelope.fill(data, 0, &p.levels[0])
	if err := p.envelope.checkUnique(data); err != nil {
		return invalid("%v", err)
	}
	m.Text = data
	err := m.fill(data, &p.envelope, opts.NullParams)
	m.Meta = p.body.Get(m.Params, "_meta")
	if opts.UniqueParams && err == nil {
		err = p.body.uniqueParams(m.Params, m.Meta)
		m.Plain = p.body.plainOf(m.Params)
	}
	if len(data) >= minOutline {
		m.Outline = new(p.body)
	}
	return err
}

func (m *Message) fill(data []byte, envelope *Outline, nullParams bool) error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	var version, method []byte
	for k, v := range envelope.Members(data) {
		switch {
		case k.Is("jsonrpc"):
			version = v
		case k.Is("id"):
			note(m.setID(v))
		case k.Is("method"):
			if method = v; v[0] != '"' || len(v) == 2 {
				note(invalid("method is not a name"))
			}
		case k.Is("params"):
			if m.NullParams = nullParams && IsNull(v); m.NullParams {
				continue
			}
			if m.Params = v; v[0] != '{' {
				note(invalid("params is not an object"))
			}
		case k.Is("result"):
			m.Result = v
		case k.Is("error"):
			note(m.setError(v))
		default:
			m.addExtra(k, v)
		}
	}
	m.Method = Unquote(method)
	note(m.checkShape(version))
	return first
}

// checkShape checks which members occur together.
func (m *Message) checkShape(version []byte) error {
	switch {
	case string(version) != `"2.0"`:
		return invalid(`jsonrpc is not "2.0"`)
	case m.nullID && m.Error == nil:
		return invalid("%v", ErrBadID)
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return invalid("method beside result or error")
	case m.Method != "":
		return nil
	case m.Result == nil && m.Error == nil:
		return invalid("neither method nor result nor error")
	case m.Result != nil && m.Error != nil:
		return invalid("both result and error")
	case m.Result != nil && m.ID.IsZero():
		return invalid("result without id")
	}
	return nil
}

// setID treats null as absent: JSON-RPC has a null id in the error response to a request
// that could not be read. checkShape refuses null elsewhere.
func (m *Message) setID(v []byte) error {
	if m.nullID = IsNull(v); m.nullID {
		return nil
	}
	id, err := ParseID(v)
	if err != nil {
		return invalid("%v", err)
	}
	m.ID = id
	return nil
}

func (m *Message) setError(v []byte) error {
	code, message := Get(v, "code"), Get(v, "message")
	e := &Error{Message: Unquote(message), Data: Get(v, "data")}
	m.Error = e
	if len(message) == 0 || message[0] != '"' || json.Unmarshal(code, &e.Code) != nil {
		return invalid("error without an integer code and a message")
	}
	return nil
}

func (m *Message) addExtra(k Key, v []byte) {
	if len(m.Extra) > 0 {
		m.Extra = append(m.Extra, ',')
	}
	m.Extra = append(append(append(m.Extra, k...), ':'), v...)
}

func (o *Outline) uniqueParams(params, meta []byte) error {
	if err := o.checkUnique(params); err != nil {
		return invalid("params: %v", err)
	}
	if err := CheckUnique(meta); err != nil {
		return invalid("params._meta: %v", err)
	}
	return nil
}
