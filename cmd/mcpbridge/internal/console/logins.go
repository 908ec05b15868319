package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
)

// A Logout says which logins of users at servers are ended, and where that is told.
type Logout struct {
	Principal string
	Servers   []string // none for all
	JSON      bool
	Out       io.Writer
}

// An EndedLogin is one that was ended.
type EndedLogin struct {
	Server    string `json:"server"`
	Principal string `json:"principal"`
	Issuer    string `json:"issuer"`
	Revoked   bool   `json:"revoked"`       // by the issuer, too
	Why       string `json:"why,omitempty"` // it was not
}

// A LoggedOut is a login at a server that was stored here, and is deleted.
type LoggedOut struct {
	Server  string `json:"server"`
	Revoked bool   `json:"revoked"`       // by the issuer, too
	Why     string `json:"why,omitempty"` // it was not
}

// NewLoggedOut returns what became of a login; err is why it was not revoked, nil if it was.
func NewLoggedOut(server string, err error) LoggedOut {
	if err != nil {
		return LoggedOut{Server: server, Why: err.Error()}
	}
	return LoggedOut{Server: server, Revoked: true}
}

// EndLogins ends logins, and prints which. That there is none is an error.
func (a *Admin) EndLogins(ctx context.Context, l *Logout) error {
	servers, where := l.Servers, strings.Join(l.Servers, ", ")
	if len(servers) == 0 {
		servers, where = []string{""}, "any server"
	}
	var ended []EndedLogin
	for _, server := range servers {
		some, err := a.endLogins(ctx, l.Principal, server)
		if err != nil {
			return err
		}
		ended = append(ended, some...)
	}
	switch {
	case len(ended) == 0:
		return fmt.Errorf("%q has no login at %s", l.Principal, where)
	case l.JSON:
		return output.JSON(l.Out, ended)
	}
	for _, e := range ended {
		how := "logged out"
		if !e.Revoked {
			how = "logged out; the login was not revoked at " + e.Issuer + ": " + e.Why
		}
		if _, err := output.Printf(l.Out, "%s at %s: %s\n", e.Principal, e.Server, how); err != nil {
			return err
		}
	}
	return nil
}

// endLogins ends the logins of a principal at a server; at all if that is empty.
func (a *Admin) endLogins(ctx context.Context, principal, server string) ([]EndedLogin, error) {
	body, err := json.Marshal(map[string]string{"principal": principal, "server": server})
	if err != nil {
		return nil, err
	}
	var told struct {
		Ended []EndedLogin `json:"ended"`
	}
	err = a.send(ctx, http.MethodPost, "/api/logout", bytes.NewReader(body), decoding(&told))
	return told.Ended, err
}
