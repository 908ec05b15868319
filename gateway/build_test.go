package gateway

import (
	"errors"
	"net/http"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// fill sets every exported field of a struct that is a number or a text.
func fill(v reflect.Value, n int64) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case !v.Type().Field(i).IsExported():
		case f.CanInt():
			f.SetInt(n + int64(i))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.Struct && f.Type().NumField() > 0:
			fill(f, n+100)
		}
	}
}

// unset returns the names of the fields of a struct that are zero.
func unset(v any) (names []string) {
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if s.Field(i).IsZero() {
			names = append(names, s.Type().Field(i).Name)
		}
	}
	return names
}

// Every option arrives.
func TestOptionsArrive(t *testing.T) {
	o := Options{
		Default: "s", MachineName: "m", AllowedHosts: []string{"h"}, AllowedOrigins: []string{"o"}, TrustedProxies: []netip.Prefix{{}}, StateKeys: []string{"k"},
		Auth: &Auth{Tokens: []StaticToken{{Name: "ada", Token: "t"}}}, PublicURL: "https://mcp.example.com",
		Environ: []string{"PATH=/bin"}, StateDir: "dir", PinDir: t.TempDir(), Audit: filepath.Join(t.TempDir(), "audit"), Limits: map[string]int64{"memory": 100 << 20, "body": 4096, "listen_topics": 7, "cache": 70_000, "metric_tools": 3},
	}
	fill(reflect.ValueOf(&o).Elem(), 1000)
	o.hooks.Dialed = func(error) {}
	s := ServerOptions{
		Name: "s", URL: "https://docs.example.com/mcp", Header: http.Header{"A": {"b"}}, Transport: TransportHTTP, RoundTripper: http.DefaultTransport,
		Era: Legacy, Replicas: PlaceAny, Isolation: IsolateNothing, HideExtensions: []string{"x"}, LogLevel: "info", Subresources: SubresourcesOff, Roots: []string{"file:///a"},
		Cache: map[string]CacheHint{"tools/list": {TTL: time.Minute, Public: true, Keep: true}},
		Auth:  &Auth{Tokens: []StaticToken{{Name: "bob", Token: "u"}}}, Tools: Shown{Deny: []string{"x"}}, Policy: &Policy{Default: DefaultDeny}, Rates: Rates{Server: Rate{Concurrent: 1}}, Pin: PinWarn,
		UpstreamAuth: &UpstreamAuth{Token: "v"},
	}
	fill(reflect.ValueOf(&s).Elem(), 2000)
	o.Servers = []ServerOptions{s}
	b := newBuild(&o, mcp.NoMetrics{})
	p := &serverParts{common: b.common, quirks: quirks.New(quirks.Options{})}
	b.parts = []*serverParts{p}
	if err := errors.Join(b.addCommon(), b.addAccess(), b.of(&s).addCredentials(p)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.close() }() // whatever is in it
	if got := unset(b.gatewayOptions()); !slices.Equal(got, []string{"Servers", "Instance", "Peers", "Handovers", "Sealer", "Pages", "PagePaths", "Anew", "Losses", "Observers", "QuietRequests"}) {
		t.Errorf("options of the gateway that are not set: %v", got)
	}
	if got := unset(b.of(&s).serverOptions(p)); !slices.Equal(got, []string{"Command", "Dial", "Start", "StateDir", "Records", "Definition", "InGroup", "MaxSessionsEach"}) {
		t.Errorf("options of a URL that are not set: %v", got)
	}
	if got := unset(s.settings()); len(got) > 0 {
		t.Errorf("settings that other programs can't set: %v", got)
	}
	if got := unset(p.access); !slices.Equal(got, []string{"Server", "Metrics"}) {
		t.Errorf("options of the access to a server that are not set: %v", got)
	}
	if got := unset(b.of(&s).entry(p, func(mcp.Changes) (mcp.Back, error) { return nil, nil })); !slices.Equal(got, []string{"Group", "Command", "HoldFor", "Saw", "Visit", "UserLogins", "OnlyFor", "Kept"}) {
		t.Errorf("what the gateway is not told of a server: %v", got)
	}
	s.UpstreamAuth = &UpstreamAuth{Login: &StoredLogin{Principal: "ada"}}
	if visitOf(&serverParts{login: new(login.Stored)}) == nil {
		t.Error("nobody is told where to log in to a server with a login")
	}
	if got := b.of(&s).entry(p, nil).OnlyFor; got != "ada" {
		t.Errorf("a server with the login of ada is for %q", got)
	}
	if err := s.UpstreamAuth.fault(&s, new(b.of(&s).set)); err == nil || s.Isolation != IsolateNothing {
		t.Error("the login of one principal is used for sessions of all")
	}
	s.UpstreamAuth, s.Replicas = nil, PlaceOne
	if got := b.of(&s).entry(p, nil).HoldFor; got <= s.Idle {
		t.Errorf("a profile is held for %v after its last call, its session lasts %v", got, s.Idle)
	}
	s.URL, s.Command, s.Dir, s.Env = "", []string{"x"}, "/", map[string]string{"A": "b"}
	command := b.of(&s).serverOptions(p)
	if got := unset(command.Command); !slices.Equal(got, []string{"Hurry", "Guard", "Wrote", "Quiet"}) || command.StateDir != "dir" || command.MaxSessionsEach == 0 {
		t.Errorf("options of a command that are not set: %v", got)
	}
	if got := b.gatewayOptions(); got.Limits.Of(limits.Body) != 4096 || got.Limits.Of(limits.ListenTopics) != 7 || got.Limits.Of(limits.Cache) != 70_000 || got.Limits.Of(limits.Streams) != limits.Streams.Default {
		t.Errorf("limits = %+v, want those of the options", got)
	}
}

// A server that serves each client in its own era has a session for each era.
func TestNewRefusesErasWithoutSessions(t *testing.T) {
	for name, s := range map[string]ServerOptions{
		"HTTP+SSE":      {Name: "s", URL: "http://a.example", Transport: TransportSSE, Era: EraOfClient},
		"one process":   {Name: "s", Command: []string{"x"}, Isolation: IsolateNothing, Era: EraOfClient},
		"another's era": {Name: "s", URL: "http://a.example", Era: "clients"},
	} {
		if _, err := New(Options{Servers: []ServerOptions{s}}); err == nil || !strings.Contains(err.Error(), "Era") {
			t.Errorf("New with %s: %v, want an error about the Era", name, err)
		}
	}
}

// Quirks are switched off by their names, or all at once; some have no switch.
func TestQuirksOff(t *testing.T) {
	for name, off := range map[string]bool{"accept": true, AllQuirks: true, "list-missing": false, "acept": false, "word": false} {
		g, err := New(Options{Servers: []ServerOptions{{Name: "s", URL: "http://a.example", QuirksOff: []string{name}}}})
		if off != (err == nil) {
			t.Errorf("New with QuirksOff %q: %v, want an error: %v", name, err, !off)
		}
		if err != nil {
			continue
		}
		if met := g.current.parts[0].quirks; met.Tolerates(quirks.Accept) || met.Tolerates(quirks.HeaderRevision) == (name == AllQuirks) {
			t.Errorf("with QuirksOff %q other quirks are tolerated", name)
		}
		_ = g.Shutdown(t.Context())
	}
}

// Tasks pass in one of the modes, for a time.
func TestNewRefusesTasks(t *testing.T) {
	for _, tt := range []struct {
		tasks Tasks
		valid bool
	}{{Tasks{}, true}, {Tasks{Mode: TasksRun, TTL: time.Minute}, true}, {Tasks{Mode: "held"}, false}, {Tasks{TTL: -1}, false}} {
		g, err := New(Options{Servers: []ServerOptions{{Name: "s", URL: "http://a.example", Tasks: tt.tasks}}})
		if tt.valid != (err == nil) {
			t.Errorf("New with Tasks %+v: %v, want an error: %v", tt.tasks, err, !tt.valid)
		}
		if err == nil {
			_ = g.Shutdown(t.Context())
		}
	}
}

// The log levels are the protocol's, and none.
func TestNewRefusesLogLevels(t *testing.T) {
	for level, valid := range map[string]bool{"": true, "none": true, "emergency": true, "loud": false} {
		g, err := New(Options{Servers: []ServerOptions{{Name: "s", URL: "http://a.example", LogLevel: level}}})
		if valid != (err == nil) {
			t.Errorf("New with LogLevel %q: %v, want an error: %v", level, err, !valid)
		}
		if err == nil {
			_ = g.Shutdown(t.Context())
		}
	}
}

func TestNewRefusesLimits(t *testing.T) {
	for _, tt := range []struct {
		limits map[string]int64
		want   string
	}{
		{map[string]int64{"bodies": 1}, `there is no limit "bodies"; there are: body, cache, `},
		{map[string]int64{"body": 1}, "limit body is 1, want 1024 to 1073741824"},
	} {
		if _, err := New(Options{Limits: tt.limits}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New with limits %v: %v, want %q", tt.limits, err, tt.want)
		}
	}
}

// What this module read of a server stands in the place of what its options say; with other
// settings it is another server.
func TestSettingsThatWereRead(t *testing.T) {
	o := Options{SessionIdle: time.Minute, Servers: []ServerOptions{{Name: "s", Command: []string{"x"}, Idle: time.Hour}, {Name: "other", URL: "https://docs.example.com/mcp", Idle: time.Hour}}}
	o.hooks.Settings = map[string]settings.Server{"s": {Idle: time.Minute, Replicas: "one"}}
	b := &build{opts: &o}
	s, other := b.of(&o.Servers[0]), b.of(&o.Servers[1])
	if s.set.Idle != time.Minute || s.holdFor() != 2*time.Minute || s.set.Timeouts.Connect != commandConnect {
		t.Errorf("settings = %+v, want those that were read, with the time that commands have", s.set)
	}
	if other.set.Idle != time.Hour {
		t.Errorf("settings of a server that nobody read = %+v, want those of its options", other.set)
	}
	was := s.identity()
	if same := b.of(&o.Servers[0]).identity(); !was.same(same) {
		t.Error("with the same settings it is another server")
	}
	o.hooks.Settings["s"] = settings.Server{Idle: time.Minute, Replicas: "any"}
	if changed := b.of(&o.Servers[0]).identity(); was.same(changed) {
		t.Error("with other settings it is the same server")
	}
}
