package router

import (
	"github.com/mcpbridge/mcpbridge/gateway/internal/overview"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// Room returns what is known of a group, without secrets of the configuration; nil if there is no
// group of that name. Its endpoint is the public one, if that is known. It asks no server, and starts none.
func (g *Gateway) Room(name string) *status.Room {
	t := g.now()
	of := t.servers[name]
	if of == nil || of.group == nil {
		return nil
	}
	known := of.group.Known()
	room := overview.Room(of.tell(), &known, func(name string) *overview.Member {
		s := t.servers[name]
		if s == nil || s.group != nil {
			return nil
		}
		return &overview.Member{Told: overview.Server(s.tell(), s.back), Names: s.log.names, Hidden: s.access.Hidden}
	}, g.opts.Secrets)
	if at := of.guard.Endpoint; at != nil {
		room.Endpoint = at.Resource
	}
	return room
}

// tell returns a server by its name and its state.
func (s *server) tell() status.Server {
	snap := s.snapshot()
	return status.Server{Name: snap.Name, State: snap.State, Error: snap.Error}
}

// memberNames returns the names of the servers of a group; nil for a server.
func (s *server) memberNames() (names []string) {
	if s.group == nil {
		return nil
	}
	for _, m := range s.group.Known().Members {
		names = append(names, m.Name)
	}
	return names
}

// TasksOf returns the tasks of a server that g holds for clients of the other era; nil if there are none.
func TasksOf(g *Gateway, server string) status.TaskTable {
	s := g.now().servers[server]
	if s == nil || s.group != nil {
		return nil
	}
	return overview.Server(s.tell(), s.back).Holding
}

// FillServerRoom fills in what g knows of the server that a room is named after, without secrets of
// the configuration. It reports false if there is no such server, or it is a group. It asks no
// server, and starts none.
func FillServerRoom(g *Gateway, room *status.ServerRoom) bool {
	s := g.now().servers[room.Name]
	if s == nil || s.group != nil {
		return false
	}
	overview.ServerRoom(room, s.tell(), s.back, s.quirks.Meetings(), s.profiles.Assign, g.opts.Secrets)
	room.Proof = s.guard.Auth != auth.None
	if at := s.guard.Endpoint; at != nil {
		room.Endpoint = at.Resource
	}
	return true
}
