package console

import "testing"

func TestParseAddress(t *testing.T) {
	const (
		none   = " is no address; write host:port, a URL of http or https, or unix: and the path of a socket"
		secret = "an address has no credentials; set MCPBRIDGE_ADMIN_TOKEN"
	)
	for _, tt := range []struct {
		text string
		want Address
		err  string
	}{
		{"127.0.0.1:2527", Address{URL: "http://127.0.0.1:2527"}, ""},
		{"[::1]:2527", Address{URL: "http://[::1]:2527"}, ""},
		{"localhost", Address{URL: "http://localhost"}, ""},
		{"https://mcp.example.com:1/login", Address{URL: "https://mcp.example.com:1"}, ""},
		{"http://127.0.0.1:2527/#x", Address{URL: "http://127.0.0.1:2527"}, ""},
		{"unix:/run/my admin", Address{Socket: "/run/my admin"}, ""},
		{"ftp://x", Address{}, `"ftp://x"` + none},
		{"http://", Address{}, `"http://"` + none},
		{":%zz", Address{}, `"http://:%zz"` + none},
		{"http://ada:pw@127.0.0.1:1", Address{}, secret},
		{"127.0.0.1:1?token=x", Address{}, secret},
	} {
		got, err := ParseAddress(tt.text)
		if got != tt.want || tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("ParseAddress(%q) = %+v, %v, want %+v, %s", tt.text, got, err, tt.want, tt.err)
		}
	}
}
