package tap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Session judges what a server sends in one session. Safe for concurrent use.
type Session struct {
	schemas *Schemas

	// mu guards the fields below.
	mu       sync.Mutex
	revision string            // what initialize agreed on; empty before
	methods  map[string]string // of the client's requests, by id as written
}

// NewSession returns a Session before its initialize.
func NewSession(s *Schemas) *Session {
	return &Session{schemas: s, methods: make(map[string]string)}
}

// Revision is what initialize agreed on, or empty before.
func (s *Session) Revision() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// A message is what a JSON-RPC message may hold.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// elements takes a batch apart; batch tells one from a message alone.
func elements(text []byte) (all []json.RawMessage, batch bool, err error) {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return []json.RawMessage{text}, false, nil
	}
	return all, true, json.Unmarshal(text, &all)
}

// Asked takes note of what the client sends: a message or a batch. What is no
// JSON is the client's affair.
func (s *Session) Asked(text []byte) {
	all, _, _ := elements(text)
	for _, one := range all {
		var m message
		if json.Unmarshal(one, &m) == nil && m.Method != "" && m.ID != nil {
			s.mu.Lock()
			s.methods[string(m.ID)] = m.Method
			s.mu.Unlock()
		}
	}
}

// Judge says what is wrong with what the server sends: a message or a batch.
func (s *Session) Judge(text []byte) error {
	all, batch, err := elements(text)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, s.judge(one))
	}
	if r := s.Revision(); batch && r != "2025-03-26" {
		errs = append(errs, fmt.Errorf("a batch, which %s has not", r))
	}
	return errors.Join(errs...)
}

func (s *Session) judge(text []byte) error {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	asked := s.answers(&m)
	r := s.Revision()
	sch := s.schemas.of[r]
	if sch == nil {
		return fmt.Errorf("revision %q is none of %q", r, Revisions)
	}
	switch {
	case m.Method != "":
		return errors.Join(sch.checkMethod(&m, text), foreign("params", m.Params))
	case m.Error != nil:
		return sch.check(sch.either("JSONRPCErrorResponse", "JSONRPCError"), text)
	case asked == "":
		return fmt.Errorf("answers a request %s that nobody made", m.ID)
	}
	return errors.Join(
		sch.check(sch.either("JSONRPCResultResponse", "JSONRPCResponse"), text),
		sch.check(sch.resultOf(asked), m.Result),
		foreign("result", m.Result))
}

// answers returns the method that m is the response to. That to initialize sets
// the revision.
func (s *Session) answers(m *message) (method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method != "" || m.ID == nil {
		return ""
	}
	method = s.methods[string(m.ID)]
	if method == "initialize" && m.Result != nil {
		var agreed struct{ ProtocolVersion string }
		_ = json.Unmarshal(m.Result, &agreed) // no revision is a problem of its own
		s.revision = agreed.ProtocolVersion
	}
	return method
}

// checkMethod checks a request or notification of the server.
func (s *schema) checkMethod(m *message, text []byte) error {
	kind, envelope := "Notification", "JSONRPCNotification"
	if m.ID != nil {
		kind, envelope = "Request", "JSONRPCRequest"
	}
	name := s.named[m.Method]
	if !strings.HasSuffix(name, kind) {
		return fmt.Errorf("the revision has no %s %s", strings.ToLower(kind), m.Method)
	}
	return errors.Join(s.check(envelope, text), s.check(name, text))
}

// What stands in modern messages alone.
var (
	modernMembers = []string{"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}
	modernMeta    = []string{
		"io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/subscriptionId",
		"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/clientCapabilities",
	}
)

// foreign says which members of a legacy message's object are modern.
func foreign(what string, text json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil // the schema has said it
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(members["_meta"], &meta) // likewise
	found := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(k string) bool { return !slices.Contains(modernMembers, k) })
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		if slices.Contains(modernMeta, k) {
			found = append(found, "_meta."+k)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("its %s has what only modern ones have: %q", what, found)
}
