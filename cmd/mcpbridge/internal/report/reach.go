package report

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
)

// ToReach returns by which flags commands of this machine reach a server that is served, and what
// a person has to type before; both are empty if nothing is needed. A token is never shown: it is
// in the variable TOKEN.
func ToReach(c *config.Config, s *config.Server) (flags, before string) {
	switch a := c.AuthOf(s); {
	case c.MakeToken:
		flags, before = withToken, "export TOKEN=…   # the token below"
	case a == nil || a.Word != "":
	case len(a.Tokens)+len(a.JWT) > 0:
		flags, before = withToken, "export TOKEN=…   # one of a client's, who proves with it who it is"
	case a.MTLS != nil:
		flags = " --cert FILE --key FILE"
	}
	if c.TLS.Cert != "" && !trusted(c.TLS.Files().Cert, c.TLS.Files().Key) {
		flags += " --cacert " + output.ShellWord(c.TLS.Cert)
	}
	return flags, before
}

const withToken = ` -H "Authorization: Bearer $TOKEN"`

// trusted reports whether this machine trusts who has issued a certificate.
func trusted(cert, key string) bool {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil || pair.Leaf == nil {
		return true // whoever serves says what is wrong with it
	}
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return !errors.As(err, new(x509.UnknownAuthorityError))
}
