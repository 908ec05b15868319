package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// Commands that are printed to try have the flags that a server wants, and never a token.
func TestToReach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cert, key, ca := bridgetest.NewAuthority(t, "nobody trusts it").Files(dir, bridgetest.Leaf{})
	const (
		token  = ` -H "Authorization: Bearer $TOKEN"`
		proves = "export TOKEN=…   # one of a client's, who proves with it who it is"
		tokens = "auth: {tokens: [{name: ada, token: s3cret-0123456789}]}\n"
	)
	secure := "tls: {cert: '" + cert + "', key: '" + key + "'"
	issued := ` --cacert '` + cert + `'`
	for _, tt := range []struct{ name, text, server, flags, before string }{
		{"nothing", "", "", "", ""},
		{"a token", tokens, "", token, proves},
		{"an access token", "public_url: https://mcp.example.com\nauth: {jwt: {issuer: 'https://id.example.com'}}\n", "", token, proves},
		{"none is wanted there", tokens + "allow_anonymous: true\n", ", auth: none", "", ""},
		{"an authority that nobody trusts", secure + "}\n", "", issued, ""},
		{"that, and a token", secure + "}\n" + tokens, "", token + issued, proves},
		{"that, and a certificate", secure + ", client_ca: '" + ca + "'}\nauth: {mtls: {principal: san}}\n", "", " --cert FILE --key FILE" + issued, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := loaded(t, tt.text+"servers: {a: {builtin: notebook"+tt.server+"}}\n")
			if flags, before := ToReach(c, &c.Servers[0]); flags != tt.flags || before != tt.before {
				t.Errorf("ToReach = %s and %q, want %s and %q", flags, before, tt.flags, tt.before)
			}
		})
	}
	made := &config.Config{MakeToken: true, TLS: config.TLS{Cert: key, Key: key}} // what is wrong with it, whoever serves says
	if flags, before := ToReach(made, &config.Server{}); flags != token || before != "export TOKEN=…   # the token below" {
		t.Errorf("ToReach = %s and %q where a token is made", flags, before)
	}
}
