package server

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/remember"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A memory is a [detect.Memory] of one command. It is safe for concurrent use: it has no
// state but the store's and the launcher's.
type memory struct {
	s     *Server
	store store
}

// A store keeps records: for this user, or for all replicas.
type store interface {
	Lookup(remember.Key) (remember.Record, bool)
	Keep(remember.Key, remember.Record) error
}

// remembered returns the stored descriptions of the server; nil unless it is a command and
// storing is configured. It also sets the stored first request of the command.
func (s *Server) remembered() detect.Memory {
	if !s.opts.isCommand() {
		return nil
	}
	m := &memory{s: s}
	if s.opts.Records != nil {
		m.store = &remember.Shared{Records: s.opts.Records, Logger: s.opts.Logger}
		return m // nothing is asked yet
	}
	if s.opts.StateDir == "" {
		return nil
	}
	m.store = remember.Open(remember.Options{Dir: s.opts.StateDir, Logger: s.opts.Logger})
	if r, ok := m.lookup(nil, ""); ok {
		s.launcher.SetFirst(r.First)
	}
	return m
}

// Era implements [detect.Memory].
func (m *memory) Era() spec.Era {
	r, ok := m.lookup(nil, "")
	if ok && m.s.opts.Records != nil { // another replica may have found it a moment ago
		m.s.launcher.SetFirst(r.First)
	}
	return r.Era
}

// Recall implements [detect.Memory]. It hides extensions, because the configuration may
// have changed since the earlier run.
func (m *memory) Recall(req *mcp.Request) *mcp.Description {
	r, ok := m.lookup(req.Profile.Capabilities, req.Principal)
	if !ok || r.Description == nil {
		return nil
	}
	d := *r.Description
	d.Capabilities = wire.AppendEdited(nil, d.Capabilities, mcp.Hiding(d.Capabilities, m.s.opts.Settings.Hidden())...)
	d.Cache = mcp.CacheHint{}
	return &d
}

// Found implements [detect.Memory].
func (m *memory) Found(era spec.Era) {
	m.keep(nil, "", remember.Record{Era: era, First: m.s.launcher.First()})
}

// Described implements [detect.Memory].
func (m *memory) Described(req *mcp.Request, era spec.Era, d *mcp.Description) []string {
	is := remember.Record{Era: era, Description: d}
	was, ok := m.lookup(req.Profile.Capabilities, req.Principal)
	m.keep(req.Profile.Capabilities, req.Principal, is)
	if !ok {
		return nil
	}
	return remember.Diff(was, is)
}

func (m *memory) lookup(capabilities json.RawMessage, principal mcp.Principal) (remember.Record, bool) {
	k, ok := m.key(capabilities, principal)
	if !ok {
		return remember.Record{}, false
	}
	return m.store.Lookup(k)
}

func (m *memory) keep(capabilities json.RawMessage, principal mcp.Principal, r remember.Record) {
	k, ok := m.key(capabilities, principal)
	if !ok {
		return
	}
	if err := m.store.Keep(k, r); err != nil {
		m.s.opts.Logger.Debug("remembering server", "upstream", m.s.opts.Name, "error", err)
	}
}

// key returns the key of stored descriptions for clients of a principal with capabilities.
// Without both it is the key of the server itself. There is none if the program can't be
// found.
func (m *memory) key(capabilities json.RawMessage, principal mcp.Principal) (remember.Key, bool) {
	if m.s.opts.Records != nil { // of whatever process: replicas have environments of their own
		return remember.Shape{Definition: m.s.opts.Definition, Capabilities: capabilities, Principal: string(principal)}.Key(), true
	}
	o := m.s.opts.Command
	k, err := remember.Server{
		Command: o.Argv[0], Args: o.Argv[1:], Env: o.ChildEnv(), Dir: o.Dir,
		Capabilities: capabilities, Principal: string(principal),
	}.Key()
	return k, err == nil
}
