package overview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// A described back knows what its server said of itself, by the scopes of requests.
type described struct {
	tellingBack
	said  map[string]*mcp.Description
	asked []*mcp.Request
	waits bool // a request could have been sent
}

func (b *described) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	b.asked, b.waits = append(b.asked, req), b.waits || ctx.Err() == nil
	if d := b.said[req.Profile.Scope]; d != nil {
		return d, nil
	}
	return nil, errNo
}

// A server's room has what it said to the admin address, or else to the gateway itself, without
// waiting for it; a server that is not ready, or is not for the admin address, is not asked for it.
func TestServerRoomDescribes(t *testing.T) {
	said := func(name string) *mcp.Description {
		return &mcp.Description{ServerInfo: json.RawMessage(`{"name":"` + name + `"}`), Capabilities: json.RawMessage(`{"tools":{}}`), Instructions: json.RawMessage(`"Say \"` + secret + `\"."`)}
	}
	const told, hidden = `{"name":"%s"} {"tools":{}} Say "[hidden]".`, "  "
	for _, tt := range []struct {
		name, state string
		said        map[string]*mcp.Description
		refused     bool
		want        string
		asked       []string // scopes
	}{
		{"to both", "ready", map[string]*mcp.Description{"docs": said("own"), "docs/probe": said("probe")}, false, fmt.Sprintf(told, "own"), []string{"docs"}},
		{"to the gateway", "ready", map[string]*mcp.Description{"docs/probe": said("probe")}, false, fmt.Sprintf(told, "probe"), []string{"docs", "docs/probe"}},
		{"to nobody", "ready", nil, false, hidden, []string{"docs", "docs/probe"}},
		{"while it is down", "down", map[string]*mcp.Description{"docs": said("own")}, false, hidden, nil},
		{"not for the admin address", "ready", map[string]*mcp.Description{"docs": said("own")}, true, hidden, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &described{said: tt.said}
			assign := admit
			if tt.refused {
				assign = func(*mcp.Request) error { return errNo }
			}
			room := status.ServerRoom{Server: status.Server{Name: "docs"}}
			ServerRoom(&room, status.Server{Name: "docs", State: tt.state}, b, nil, assign, redact.New(secret))
			if got := fmt.Sprintf("%s %s %s", room.Info, room.Capabilities, room.Instructions); got != tt.want {
				t.Errorf("it has said %q, want %q", got, tt.want)
			}
			var asked []string
			for _, req := range b.asked {
				asked = append(asked, req.Profile.Scope)
				if req.Method != spec.MethodDiscover || req.Principal != Principal || req.Era != spec.Modern || string(req.Capabilities) != "{}" {
					t.Errorf("the back got the request %+v", req)
				}
			}
			if !slices.Equal(asked, tt.asked) || b.waits {
				t.Errorf("the back was asked for %q, and may wait: %v; want %q", asked, b.waits, tt.asked)
			}
		})
	}
}

// What a server says of itself is bounded: what is too long is left out where a part of it would be
// no JSON, and cut otherwise.
func TestServerRoomIsBounded(t *testing.T) {
	object := func(n int) json.RawMessage { return json.RawMessage(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }
	b := &described{said: map[string]*mcp.Description{"docs": {
		ServerInfo: object(maxDescribed), Capabilities: object(maxDescribed + 1), Instructions: json.RawMessage(`"` + strings.Repeat("é", maxInstructions) + `"`),
	}}}
	var room status.ServerRoom
	ServerRoom(&room, status.Server{Name: "docs", State: "ready"}, b, nil, admit, nil)
	if len(room.Info) != maxDescribed || room.Capabilities != nil {
		t.Errorf("%d bytes of info and %d of capabilities, want %d and none", len(room.Info), len(room.Capabilities), maxDescribed)
	}
	if want := redact.Cut(strings.Repeat("é", maxInstructions), maxInstructions); room.Instructions != want {
		t.Errorf("the instructions have %d bytes, want %d", len(room.Instructions), len(want))
	}
}

// A room says of its server what the overview says, and no secret of how it is reached. What was met
// of its peers is a list, also while it is empty.
func TestServerRoomOfAServer(t *testing.T) {
	unfilled := func() status.ServerRoom {
		return status.ServerRoom{Reached: "run --key " + secret, Dir: "/srv/" + secret, Credentials: "the login of " + secret, Proof: true}
	}
	room := unfilled()
	ServerRoom(&room, status.Server{Name: "docs", State: "down", Error: "gone"}, &described{}, nil, admit, redact.New(secret))
	if got := room.Reached + ", " + room.Dir + ", " + room.Credentials; got != "run --key [hidden], /srv/[hidden], the login of [hidden]" {
		t.Errorf("it is reached by %s", got)
	}
	if room.Name != "docs" || room.Error != "gone" || room.Sessions != 7 || room.EraReason != "the configuration says so" || !room.Proof {
		t.Errorf("the room is %+v", room)
	}
	if room.Quirks == nil || len(room.Quirks) > 0 {
		t.Errorf("the quirks are %#v, want an empty list", room.Quirks)
	}
	room = unfilled()
	met := quirks.New(quirks.Options{})
	met.Met(quirks.NullParams, "cli/1")
	met.Met(quirks.ListMissing, "")
	met.Met(quirks.ListMissing, "")
	ServerRoom(&room, status.Server{Name: "docs", State: "down"}, &described{}, met.Meetings(), admit, nil)
	var got []string
	for _, q := range room.Quirks {
		got = append(got, fmt.Sprintf("%s: %s of the %s %s, %d times", q.Server, q.Name, q.Side, q.Client, q.Count))
	}
	slices.Sort(got)
	if want := []string{"docs: list-missing of the server , 2 times", "docs: null-params of the client cli/1, 1 times"}; !slices.Equal(got, want) {
		t.Errorf("the quirks are %q, want %q", got, want)
	}
}
