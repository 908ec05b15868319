package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

func (s *shown) ServerRoom(name string) *status.ServerRoom {
	if name != "inside" {
		return nil
	}
	return &status.ServerRoom{Server: status.Server{Name: name}, Reached: "sh -c x"}
}

func (s *shown) Rates(server string) *status.Rates {
	r := &status.Rates{Servers: []status.Rate{{Server: "inside"}}, Clients: []status.Rate{}}
	if server != "" {
		r.Clients = append(r.Clients, status.Rate{Server: server, Client: "a/1"})
	}
	return r
}

func (s *shown) Restart(server string) error {
	s.asked = append(s.asked, "restart "+server)
	return nil
}

func (s *shown) Tasks(server string) status.Tasks {
	return status.Tasks{List: []status.Task{{Key: "k1", Principal: "ada", Tool: "dig", Status: "working", Followers: 2}}}
}

func (s *shown) CancelTask(_ context.Context, server, key string) error {
	if key != "k1" {
		return errors.New("there is no such task any more")
	}
	s.asked = append(s.asked, "cancel "+key+" of "+server)
	return nil
}

func (s *shown) ToolChanges(_ context.Context, server string) ([]status.ToolChange, error) {
	return []status.ToolChange{{Tool: "read", Is: []byte(`{"name":"read"}`), Digest: "sha256:1"}}, nil
}

func (s *shown) AcceptTools(_ context.Context, server string, tools []status.AcceptedTool) (int, error) {
	if tools[0].Digest != "sha256:1" {
		return 0, errors.New("it is not as it was shown any more")
	}
	s.asked = append(s.asked, fmt.Sprint("accept ", server, " ", tools))
	return len(tools), nil
}

func (s *shown) LogIn(_ context.Context, server string) (string, error) {
	s.asked = append(s.asked, "login "+server)
	return "https://id.example.com/authorize", nil
}

func (s *shown) LogOut(_ context.Context, server string) (revoked, err error) {
	s.asked = append(s.asked, "logout "+server)
	return errors.New("no revocation_endpoint"), nil
}

// The rooms of servers, and what can be done in them.
func TestServerRooms(t *testing.T) {
	lines := live.NewLines(nil)
	lines.Add("inside", "one")
	lines.Add("inside", "two")
	url, g := start(t, func(o *Options) { o.Lines = lines })
	for _, tt := range []struct {
		to, body string
		code     int
		want     string
	}{
		{"GET /api/servers/inside", "", 200, `"reached":"sh -c x"`},
		{"GET /api/servers/inside", "", 200, `"lines":true`},
		{"GET /api/servers/none", "", 404, "/api/servers has all"},
		{"GET /api/servers/inside/lines", "", 200, `"text":"one"`},
		{"GET /api/servers/inside/lines?after=1", "", 200, `{"lines":[{"seq":2,`},
		{"GET /api/servers/none/lines", "", 404, "/api/servers has all"},
		{"GET /api/servers/inside/resources?cursor=c", "", 200, `"result"`},
		{"GET /api/servers/inside/else", "", 404, "prompts, resources and templates"},
		{"GET /api/rates", "", 200, `"clients":[]`},
		{"GET /api/rates?server=inside", "", 200, `"client":"a/1"`},
		{"GET /api/servers/inside/changes", "", 200, `"digest":"sha256:1"`},
		{"POST /api/servers/inside/restart", "{}", 200, `{"restarted":"inside"}`},
		{"POST /api/servers/inside/login", "{}", 200, `{"url":"https://id.example.com/authorize"}`},
		{"POST /api/servers/inside/logout", "{}", 200, `{"revoked":false,"why":"no revocation_endpoint"}`},
		{"GET /api/servers/inside/tasks", "", 200, `{"list":[{"key":"k1","principal":"ada","tool":"dig","status":"working",`},
		{"GET /api/servers/none/tasks", "", 404, "/api/servers has all"},
		{"POST /api/servers/inside/cancel", `{}`, 400, "as /tasks has it"},
		{"POST /api/servers/inside/cancel", `{"task":"k2"}`, 409, "no such task any more"},
		{"POST /api/servers/inside/cancel", `{"task":"k1"}`, 200, `{"cancelled":"k1"}`},
		{"POST /api/servers/none/cancel", `{"task":"k1"}`, 404, "/api/servers has all"},
		{"POST /api/servers/none/restart", "{}", 404, "/api/servers has all"},
		{"POST /api/servers/inside/accept", `{"tools":[]}`, 400, "with tool and digest"},
		{"POST /api/servers/inside/accept", `{"tools":[{"tool":"read","digest":"sha256:0"}]}`, 409, "not as it was shown"},
		{"POST /api/servers/inside/accept", `{"tools":[{"tool":"read","digest":"sha256:1"}]}`, 200, `{"accepted":1}`},
		{"POST /api/servers/none/accept", `{"tools":[{"tool":"read","digest":"sha256:1"}]}`, 404, "/api/servers has all"},
	} {
		method, path, _ := strings.Cut(tt.to, " ")
		res, text := do(t, method, url+path, tt.body, "Authorization", "Bearer "+secret, "Content-Type", "application/json")
		if res.StatusCode != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s = %s %s, want %d and %s", tt.to, tt.body, res.Status, text, tt.code, tt.want)
		}
	}
	want := `inside resources/list {"cursor":"c"}, restart inside, login inside, logout inside, cancel k1 of inside, accept inside [{read sha256:1}]`
	if got := strings.Join(g.asked, ", "); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// Where messages are not shown, a server has no lines.
func TestServerRoomWithoutLines(t *testing.T) {
	url, _ := start(t, nil)
	for path, want := range map[string]string{"/api/servers/inside": `"lines":false`, "/api/servers/inside/lines": `{"lines":[]}`} {
		if res, text := do(t, "GET", url+path, "", "Authorization", "Bearer "+secret); res.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s = %s %s, want %s", path, res.Status, text, want)
		}
	}
}
