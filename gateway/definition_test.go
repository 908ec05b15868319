package gateway

import (
	"net/http"
	"testing"
	"time"
)

// digestOf returns the digest of a server that only other programs have.
func digestOf(s *ServerOptions) string { return (&build{opts: &Options{}}).of(s).digest() }

// Replicas whose servers of one name differ in what is watched do not watch for each other.
func TestDefinitionTellsServersApart(t *testing.T) {
	base := func() ServerOptions {
		return ServerOptions{Name: "s", URL: "https://a.example/mcp?key=k", Header: http.Header{"X-Key": {"one"}}, UpstreamAuth: &UpstreamAuth{Token: "t"}}
	}
	for what, change := range map[string]func(*ServerOptions){
		"another host":       func(s *ServerOptions) { s.URL = "https://b.example/mcp?key=k" },
		"another path":       func(s *ServerOptions) { s.URL = "https://a.example/other?key=k" },
		"another parameter":  func(s *ServerOptions) { s.URL = "https://a.example/mcp?tenant=k" },
		"another header":     func(s *ServerOptions) { s.Header = http.Header{"X-Tenant": {"one"}} },
		"another transport":  func(s *ServerOptions) { s.Transport = TransportSSE },
		"another era":        func(s *ServerOptions) { s.Era = Modern },
		"each client's era":  func(s *ServerOptions) { s.Era = EraOfClient },
		"other roots":        func(s *ServerOptions) { s.Roots = []string{"file:///r"} },
		"polling":            func(s *ServerOptions) { s.Synthesize.Tools = time.Second },
		"other extensions":   func(s *ServerOptions) { s.HideExtensions = []string{"x"} },
		"another isolation":  func(s *ServerOptions) { s.Isolation = IsolateNothing },
		"another login":      func(s *ServerOptions) { s.UpstreamAuth = &UpstreamAuth{Login: &StoredLogin{Principal: "ada"}} },
		"another issuer":     func(s *ServerOptions) { s.UpstreamAuth = &UpstreamAuth{ClientCredentials: &IssuerClient{Issuer: "i"}} },
		"a command":          func(s *ServerOptions) { s.URL, s.Command = "", []string{"x"} },
		"names for a client": func(s *ServerOptions) { s.ForwardClientInfo = true },
	} {
		s, was := base(), base()
		if change(&s); digestOf(&s) == digestOf(&was) {
			t.Errorf("a server with %s is taken for the same", what)
		}
	}
	a, b := ServerOptions{Command: []string{"x", "-a", "b"}}, ServerOptions{Command: []string{"x", "-a b"}}
	if digestOf(&a) == digestOf(&b) {
		t.Error("two commands are taken for one")
	}
}

// A secret that is replaced, live or by a restart, leaves the server the one that it is; and no
// digest tells of a secret.
func TestDefinitionHasNoSecrets(t *testing.T) {
	base := func() ServerOptions {
		return ServerOptions{URL: "https://u:p@a.example/mcp?key=k", Header: http.Header{"x-key": {"one"}}, UpstreamAuth: &UpstreamAuth{Token: "t"},
			Command: []string{"x", "--token=one", "--api-key", "one"}, Env: map[string]string{"KEY": "one"}}
	}
	for what, change := range map[string]func(*ServerOptions){
		"user information": func(s *ServerOptions) { s.URL = "https://v:q@a.example/mcp?key=k" },
		"a query":          func(s *ServerOptions) { s.URL = "https://u:p@a.example/mcp?key=other" },
		"a header":         func(s *ServerOptions) { s.Header = http.Header{"X-Key": {"two"}} },
		"a token":          func(s *ServerOptions) { s.UpstreamAuth = &UpstreamAuth{Token: "other"} },
		"an argument":      func(s *ServerOptions) { s.Command = []string{"x", "--token=two", "--api-key", "two"} },
		"a variable":       func(s *ServerOptions) { s.Env = map[string]string{"KEY": "two"} },
		"limits":           func(s *ServerOptions) { s.Timeouts.Request, s.Idle = time.Hour, time.Hour },
	} {
		s, was := base(), base()
		if change(&s); digestOf(&s) != digestOf(&was) {
			t.Errorf("with another value of %s, the server is taken for another", what)
		}
	}
	secret := UpstreamAuth{ClientCredentials: &IssuerClient{ClientSecret: "a", PrivateKey: "b"}}
	other := UpstreamAuth{ClientCredentials: &IssuerClient{ClientSecret: "c", PrivateKey: "d"}}
	if a, b := digestOf(&ServerOptions{UpstreamAuth: &secret}), digestOf(&ServerOptions{UpstreamAuth: &other}); a != b {
		t.Error("a client's secret is part of the digest")
	}
}
