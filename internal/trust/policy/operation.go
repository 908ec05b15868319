package policy

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A class says how rules apply to a method.
type class uint8

const (
	plain     class = iota // on nothing that rules name
	free                   // always allowed: the handshake, and ending something
	use                    // on one tool, prompt or resource
	list                   // its result is filtered
	listen                 // its filter is narrowed
	followUp               // part of a call that was allowed
	reference              // completion: on the prompt or resource to which it refers
)

// A subject says what requests of a method are about.
type subject struct {
	at     int // index in known; zero if unknown
	class  class
	kind   Kind
	member string // of params, for use; of the result, for list
	name   string // the member of a list's element that has its name
}

var subjects = map[string]*subject{
	spec.MethodInitialize:  {class: free},
	spec.MethodDiscover:    {class: free},
	spec.MethodPing:        {class: free},
	spec.MethodSetLevel:    {class: free},
	spec.MethodUnsubscribe: {class: free},

	spec.NotifyInitialized:      {class: free},
	spec.NotifyCancelled:        {class: free},
	spec.NotifyProgress:         {class: free},
	spec.NotifyRootsListChanged: {class: free},

	spec.MethodToolsCall:     {class: use, kind: Tool, member: "name"},
	spec.MethodPromptsGet:    {class: use, kind: Prompt, member: "name"},
	spec.MethodResourcesRead: {class: use, kind: Resource, member: "uri"},
	spec.MethodSubscribe:     {class: use, kind: Resource, member: "uri"},
	spec.MethodComplete:      {class: reference, member: "ref"},

	spec.MethodToolsList:          {class: list, kind: Tool, member: "tools", name: "name"},
	spec.MethodPromptsList:        {class: list, kind: Prompt, member: "prompts", name: "name"},
	spec.MethodResourcesList:      {class: list, kind: Resource, member: "resources", name: "uri"},
	spec.MethodResourcesTemplates: {class: list, kind: Resource, member: "resourceTemplates", name: "uriTemplate"},

	spec.MethodListen: {class: listen, member: "notifications"},

	spec.MethodTaskGet:    {class: followUp},
	spec.MethodTaskUpdate: {class: followUp},
	spec.MethodTaskCancel: {class: followUp},
	spec.MethodTaskResult: {class: followUp},
	spec.MethodTaskList:   {class: followUp},
}

// toolsCall is found without a lookup, for speed.
var toolsCall = subjects[spec.MethodToolsCall]

// usage is the subject of another method that uses something.
var usage = subject{class: use}

// unknown is the subject of methods that are not in subjects.
var unknown = new(subject)

// known numbers the methods in subjects, from 1.
var known = number()

func number() []string {
	all := append([]string{""}, slices.Sorted(maps.Keys(subjects))...)
	for i, method := range all[1:] {
		subjects[method].at = i + 1
	}
	return all
}

func subjectOf(method string) *subject {
	if method == spec.MethodToolsCall {
		return toolsCall
	}
	if s := subjects[method]; s != nil {
		return s
	}
	return unknown
}

// An Operation is what a request does, as far as rules can name it.
type Operation struct {
	Method string
	about  *subject // nil for the zero Operation
	kind   Kind     // of name
	name   name     // of use and reference
	second *name    // of an ambiguous reference
	other  Kind     // of second
}

// Free reports whether the operation is always allowed: a handshake, or ending something.
func (op *Operation) Free() bool { return op.class() == free }

func (op *Operation) class() class {
	if op.about == nil {
		return plain
	}
	return op.about.class
}

// About returns the kind and the name, as written, of what the operation is about. The kind
// is None if it has no name.
func (op *Operation) About() (Kind, string) {
	if c := op.class(); c == use || c == reference {
		return op.kind, op.name.text
	}
	return None, ""
}

// Rename has the operation be about something of another name, of the same kind.
func (op *Operation) Rename(text string) { op.name = newName(op.kind, text) }

// Lists returns what the operation lists; None if it is not a list.
func (op *Operation) Lists() Kind {
	if op.class() != list {
		return None
	}
	return op.about.kind
}

// Listed returns the member of the result that contains the list, and the member of its
// elements that contains their name. It returns false if the operation is not a list.
func (op *Operation) Listed() (array, name string, ok bool) {
	if op.class() != list {
		return "", "", false
	}
	return op.about.member, op.about.name, true
}

// An AmbiguousError says that a request is ambiguous, because programs could read it in different
// ways.
type AmbiguousError struct{ Reason string }

func (e *AmbiguousError) Error() string { return e.Reason }

func odd(reason string) error { return &AmbiguousError{reason} }

// Read returns the operation of a request or notification. extra has the members of its
// envelope that JSON-RPC does not define. Read returns an [*AmbiguousError] if the server
// may read the request differently: servers differ in how they treat the case of names,
// repeated names, and values of wrong types.
func Read(method string, params, extra []byte) (Operation, error) {
	return ReadParsed(method, params, extra, wire.Plain{})
}

// ReadParsed is Read of a parsed message, for which p may say that its params have plain
// names.
func ReadParsed(method string, params, extra []byte, p wire.Plain) (op Operation, err error) {
	if err := CheckEnvelope(extra); err != nil {
		return op, err
	}
	op.Method, op.about = method, subjectOf(method)
	if op.about == unknown && mistakable(method) {
		return op, odd("the method differs only in case from one of the protocol, or is not printable")
	}
	switch op.about.class {
	case use:
		op.kind = op.about.kind
		err = op.readName(params, p)
	case reference:
		err = op.readReference(params)
	case listen:
		err = checkFilter(params, op.about.member)
	}
	return op, err
}

// Use returns the operation of a method on one resource, tool or prompt.
func Use(method string, k Kind, text string) Operation {
	about := subjectOf(method)
	if about.class != use {
		about = &usage
	}
	return Operation{Method: method, about: about, kind: k, name: newName(k, text)}
}

// CheckEnvelope returns an [*AmbiguousError] if a message, with the unknown members extra,
// could be read as another one.
func CheckEnvelope(extra []byte) error {
	if len(extra) == 0 {
		return nil
	}
	object := append(append([]byte{'{'}, extra...), '}')
	for _, member := range []string{"method", "params", "id", "result", "error", "jsonrpc"} {
		if _, err := only(object, member); err != nil {
			return err
		}
	}
	return nil
}

// mistakable reports whether a lenient server may treat an unknown method as a known one.
func mistakable(method string) bool {
	for _, r := range method {
		if r <= ' ' || r > '~' {
			return true
		}
	}
	for known := range subjects {
		if strings.EqualFold(known, method) {
			return true
		}
	}
	return false
}

func (op *Operation) readName(params []byte, p wire.Plain) (err error) {
	member := op.about.member
	var v []byte
	if p.Of(params) {
		v = p.Get(params, member)
	}
	if v == nil { // or in another case
		if v, err = only(params, member); err != nil {
			return err
		}
	}
	if len(v) < 2 || v[0] != '"' {
		return odd("params." + member + " is missing or not a string")
	}
	op.name, err = readText(op.kind, v)
	return err
}

func readText(k Kind, v []byte) (name, error) {
	if k != Resource && isPlain(v[1:len(v)-1]) {
		text := string(v[1 : len(v)-1])
		return name{text: text, clean: text, folded: text}, nil
	}
	text := wire.Unquote(v)
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return name{}, odd("a name has a control character")
	}
	return newName(k, text), nil
}

// isPlain reports whether a JSON string has no escapes, white space or capitals, so that it
// can be read in one way only.
func isPlain(text []byte) bool {
	for _, b := range text {
		if b <= ' ' || b > '~' || b == '\\' || 'A' <= b && b <= 'Z' {
			return false
		}
	}
	return true
}

// only returns the value of a member; nil if there is none. It returns an error if the name
// of another member differs in case only: some servers would read that one.
func only(object []byte, member string) (value []byte, err error) {
	for k, v := range wire.Members(object) {
		switch {
		case k.Is(member):
			if value != nil {
				return nil, odd("member " + member + " is there twice")
			}
			value = v
		case sameButCase(k, member):
			return nil, odd("a member differs only in case from " + member)
		}
	}
	return value, nil
}

func sameButCase(k wire.Key, member string) bool {
	written := k[1 : len(k)-1]
	if len(written) < len(member) {
		return false // without escapes, no text with letters of other scripts is shorter
	}
	if len(written) == len(member) {
		return bytes.EqualFold(written, []byte(member))
	}
	return !wire.IsPlain(written) && strings.EqualFold(k.String(), member)
}

// readReference reads the reference of a completion. If its type is neither prompt nor
// resource, rules for both apply.
//
// Spec: 2026-07-28, server/utilities/completion, Reference Types.
func (op *Operation) readReference(params []byte) error {
	ref, err := only(params, "ref")
	if err != nil || ref == nil {
		return err
	}
	if !wire.IsObject(ref) {
		return odd("params.ref is not an object")
	}
	var found [3][]byte
	for i, member := range []string{"type", "name", "uri"} {
		if found[i], err = only(ref, member); err != nil {
			return err
		}
		if v := found[i]; v != nil && v[0] != '"' {
			return odd("params.ref." + member + " is not a string")
		}
	}
	if found[1] != nil {
		op.kind = Prompt
		if op.name, err = readText(Prompt, found[1]); err != nil || found[2] == nil {
			return err
		}
		uri, err := readText(Resource, found[2])
		op.second, op.other = &uri, Resource
		return err
	}
	if found[2] != nil {
		op.kind = Resource
		op.name, err = readText(Resource, found[2])
	}
	return err
}

// checkFilter refuses a listen filter in which programs could see different resources.
func checkFilter(params []byte, member string) error {
	filter, err := only(params, member)
	if err != nil {
		return err
	}
	_, err = only(filter, "resourceSubscriptions")
	return err
}
