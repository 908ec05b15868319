package report

import (
	"path"
	"runtime"

	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Rooms are single servers of a gateway as the admin page shows them.
type Rooms struct {
	cmdhook.Inner
	Endpoint func(name string) string // as a client on this machine reaches a server
}

// ServerRoom returns what is known of a server; nil if there is none of that name. It has what
// hosts' files have for it.
func (r Rooms) ServerRoom(name string) *status.ServerRoom {
	room := r.Inner.ServerRoom(name)
	if room == nil {
		return nil
	}
	if room.Endpoint == "" {
		room.Endpoint = r.Endpoint(name)
	}
	room.Snippets = snippets(name, room.Endpoint, room.Proof)
	return room
}

// snippets returns what the file of each known host has for a server at a URL. With proof, clients
// have to prove who they are there.
func snippets(name, url string, proof bool) (all []status.Snippet) {
	for _, h := range hostfile.All {
		s := status.Snippet{Host: h.Name, Title: h.Title, Text: h.Endpoint(name, url, proof)}
		for _, file := range h.Files(hostfile.Machine{OS: runtime.GOOS, Home: "~"}) {
			s.Files = append(s.Files, path.Clean(file))
		}
		all = append(all, s)
	}
	return all
}
