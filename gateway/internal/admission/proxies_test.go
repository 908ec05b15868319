package admission

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

func TestShareOf(t *testing.T) {
	trusted := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for _, tt := range []struct {
		name, remote string
		headers      [][2]string
		want         string // the network; empty for none
	}{
		{"its own address", "192.0.2.7:1", nil, "192.0.2.7/32"},
		{"the /64 of IPv6", "[2001:db8:2:3:4:5:6:7]:1", nil, "2001:db8:2:3::/64"},
		{"IPv4 within IPv6", "[::ffff:192.0.2.7]:1", nil, "192.0.2.7/32"},
		{"with a zone", "[fe80::1%eth0]:1", nil, "fe80::/64"},
		{"unknown", "@", nil, ""},
		{"not of a proxy", "192.0.2.7:1", [][2]string{{"X-Forwarded-For", "203.0.113.9"}}, "192.0.2.7/32"},
		{"of a proxy that says nothing", "10.0.0.1:1", nil, "10.0.0.1/32"},
		{"of a proxy", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "203.0.113.9"}}, "203.0.113.9/32"},
		{"of two proxies", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "203.0.113.9, 10.2.3.4"}}, "203.0.113.9/32"},
		{"the client's own words before it", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "198.51.100.1, 203.0.113.9"}}, "203.0.113.9/32"},
		{"in two lines", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "198.51.100.1"}, {"X-Forwarded-For", "203.0.113.9"}}, "203.0.113.9/32"},
		{"with a port", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "203.0.113.9:8080"}}, "203.0.113.9/32"},
		{"proxies alone", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "10.0.0.3, 10.0.0.2"}}, "10.0.0.3/32"},
		{"unreadable", "10.0.0.1:1", [][2]string{{"X-Forwarded-For", "198.51.100.1, unknown"}}, "10.0.0.1/32"},
		{"by RFC 7239", "10.0.0.1:1", [][2]string{{"Forwarded", `for=198.51.100.1, for="[2001:db8:2:3::1]:4711";proto=https`}}, "2001:db8:2:3::/64"},
		{"by RFC 7239, obfuscated", "10.0.0.1:1", [][2]string{{"Forwarded", "for=198.51.100.1, For=_hidden"}}, "10.0.0.1/32"},
		{"both headers", "10.0.0.1:1", [][2]string{{"Forwarded", "for=198.51.100.1"}, {"X-Forwarded-For", "203.0.113.9"}}, "10.0.0.1/32"},
		{"a proxy of IPv6", "[2001:db8:1::1]:1", [][2]string{{"X-Forwarded-For", "2001:db8:2:3::9"}}, "2001:db8:2:3::/64"},
	} {
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.RemoteAddr = tt.remote
		for _, h := range tt.headers {
			r.Header.Add(h[0], h[1])
		}
		want := mcp.Share{Principal: mcp.Anonymous}
		if tt.want != "" {
			want.Net = netip.MustParsePrefix(tt.want)
		}
		if got := trusted.ShareOf(r, mcp.Anonymous); got != want {
			t.Errorf("%s: share = %v, want %v", tt.name, got, want)
		}
		if got := trusted.ShareOf(r, "ada"); got != (mcp.Share{Principal: "ada"}) {
			t.Errorf("%s: share of ada = %v, want her own wherever she is", tt.name, got)
		}
	}
}

func BenchmarkShareOf(b *testing.B) {
	none := Proxies{}
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.RemoteAddr = "192.0.2.7:12345"
	b.ReportAllocs()
	for b.Loop() {
		if !none.ShareOf(r, mcp.Anonymous).Net.IsValid() {
			b.Fatal("no share")
		}
	}
}
