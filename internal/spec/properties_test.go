package spec

import (
	"cmp"
	"net/url"
	"slices"
	"testing"
)

func TestErrorCodes(t *testing.T) {
	for _, tt := range []struct {
		code                      int64
		reserved, modern, defined bool
	}{
		{CodeParse, false, false, true},
		{CodeSessionNotFound, false, false, true},
		{CodeResourceNotFound, false, false, true},
		{CodeURLElicitation, true, false, true},
		{CodeHeaderMismatch, true, true, true},
		{CodeMissingCapability, true, true, true},
		{CodeUnsupportedVersion, true, true, true},
		{-32019, false, false, false},
		{-32099, true, false, false},
		{-32100, false, false, false},
		{0, false, false, false},
	} {
		if Reserved(tt.code) != tt.reserved || ModernError(tt.code) != tt.modern || DefinedCode(tt.code) != tt.defined {
			t.Errorf("%d: reserved %v, modern %v, defined %v, want %+v", tt.code, Reserved(tt.code), ModernError(tt.code), DefinedCode(tt.code), tt)
		}
	}
}

func TestUndefined(t *testing.T) {
	for method, want := range map[string]bool{
		MethodToolsCall: false, MethodTaskGet: false, "tasks/new": false, MethodSkillsGet: true, "events/stream": true, "": true,
	} {
		if Undefined(method) != want {
			t.Errorf("Undefined(%q) = %v, want %v", method, !want, want)
		}
	}
	for method, want := range map[string]bool{
		NotifyProgress: false, NotifyAcknowledged: false, NotifyResourceUpdated: false, MethodToolsCall: true, "notifications/x": true,
	} {
		if UndefinedNotification(method) != want {
			t.Errorf("UndefinedNotification(%q) = %v, want %v", method, !want, want)
		}
	}
}

// What the specification says of a method, for one of each kind.
func TestMethodProperties(t *testing.T) {
	type properties struct {
		capability, array, named string
		lists, cacheable, mayAsk bool
	}
	for method, want := range map[string]properties{
		MethodToolsCall:     {"tools", "content", "name", false, false, true},
		MethodToolsList:     {"tools", "tools", "", true, true, false},
		MethodResourcesRead: {"resources", "contents", "uri", false, true, true},
		MethodDiscover:      {"", "", "", false, true, false},
		MethodComplete:      {"completions", "", "", false, false, false},
		MethodTaskGet:       {"", "", "taskId", false, false, false},
		MethodSkillsList:    {"", "", "", false, true, false},
		"events/stream":     {},
	} {
		got := properties{Capability(method), Array(method), Named(method), Lists(method), Cacheable(method), MayAsk(method)}
		if got != want {
			t.Errorf("%s: %+v, want %+v", method, got, want)
		}
	}
}

func TestLogLevels(t *testing.T) {
	for _, tt := range []struct {
		l, m        LogLevel
		valid       bool // l
		allows      bool // m
		moreVerbose LogLevel
	}{
		{"", "error", false, false, "error"},
		{"warning", "", true, true, "warning"},
		{"warning", "info", true, false, "info"},
		{"warning", "error", true, true, "warning"},
		{"error", "error", true, true, "error"},
		{"debug", "unheard-of", true, true, "debug"},
		{"Debug", "", false, true, "Debug"},
	} {
		if tt.l.Valid() != tt.valid || tt.l.Allows(tt.m) != tt.allows || tt.l.MoreVerbose(tt.m) != tt.moreVerbose {
			t.Errorf("%q, %q: valid %v, allows %v, more verbose %q, want %+v", tt.l, tt.m, tt.l.Valid(), tt.l.Allows(tt.m), tt.l.MoreVerbose(tt.m), tt)
		}
	}
}

// The date decides of which era a revision is that nobody has published.
func TestErasOfRevisions(t *testing.T) {
	for r, want := range map[Revision]Era{
		Rev20241105: Legacy, Rev20260728: Modern, "2027-01-01": Modern, "2026-07-27": Legacy, "1999-12-31": Legacy,
		"": Unknown, "v999.0.0": Unknown, "2026/07/28": Unknown, "2026-7-28": Unknown, "20x6-07-28": Unknown,
	} {
		if got := r.Era(); got != want {
			t.Errorf("Era(%q) = %v, want %v", r, got, want)
		}
		if known := slices.Contains(AllRevisions(), r); r.Known() != known {
			t.Errorf("Known(%q) = %v, want %v", r, !known, known)
		}
	}
}

func TestTextsOfEras(t *testing.T) {
	for era, want := range map[Era][2]string{
		Legacy:  {"legacy", "2025-11-25 and earlier (sessions)"},
		Modern:  {"modern", "2026-07-28 (no sessions)"},
		Unknown: {"unknown", "an unknown revision"},
	} {
		if era.String() != want[0] || era.Speaks() != want[1] {
			t.Errorf("%d: %q, %q, want %q", era, era, era.Speaks(), want)
		}
		revisions := Revisions(era)
		if wants := era != Unknown; wants != (len(revisions) > 0) || !slices.IsSortedFunc(revisions, func(a, b Revision) int { return cmp.Compare(b, a) }) {
			t.Errorf("Revisions(%v) = %q, want the newest first", era, revisions)
		}
		for _, r := range revisions {
			if r.Era() != era {
				t.Errorf("%s is among the revisions of %v", r, era)
			}
		}
	}
	err := &RevisionError{"2099-01-01", Revisions(Modern)}
	if got, want := err.Error(), `unsupported revision "2099-01-01", want one of ["2026-07-28"]`; got != want {
		t.Errorf("Error() = %s, want %s", got, want)
	}
}

func TestIssuerMetadataURLs(t *testing.T) {
	const at = "https://a.example/.well-known/"
	for issuer, want := range map[string][]string{
		"https://a.example":     {at + "oauth-authorization-server", at + "openid-configuration"},
		"https://a.example/":    {at + "oauth-authorization-server", at + "openid-configuration"},
		"https://a.example/t/1": {at + "oauth-authorization-server/t/1", at + "openid-configuration/t/1", "https://a.example/t/1/.well-known/openid-configuration"},
		"https://a.example/%2F": {at + "oauth-authorization-server/%2F", at + "openid-configuration/%2F", "https://a.example/%2F/.well-known/openid-configuration"},
	} {
		u, err := url.Parse(issuer)
		if err != nil {
			t.Fatal(err)
		}
		if got := IssuerMetadataURLs(u); !slices.Equal(got, want) {
			t.Errorf("IssuerMetadataURLs(%s) = %q, want %q", issuer, got, want)
		}
	}
}
