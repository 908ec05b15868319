package replicas

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Of the servers of a replica the first are known by their names, and none where too much is told.
func TestServers(t *testing.T) {
	var names []string
	for i := range MaxServers + 10 {
		names = append(names, "server-"+strconv.Itoa(i))
	}
	s := ServersOf(slices.Values(names))
	for i, name := range names {
		if got := s.Has(name); got != (i < MaxServers) {
			t.Errorf("Has(%s) = %v", name, got)
		}
	}
	if len(s) > MaxMember/2 {
		t.Errorf("%d bytes, of %d for the record", len(s), MaxMember)
	}
	if ServersOf(slices.Values([]string{"files"})).Has("weather") || Servers("").Has("files") || Servers("PX2").Has("files") {
		t.Error("a server is known that was not told of")
	}
	if s.Bounded() != s || Servers(strings.Repeat("PX2z", MaxServers+1)).Bounded() != "" {
		t.Error("Bounded keeps what is too long, or drops what is not")
	}
}
