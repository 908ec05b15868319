package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// fetchTimeout limits the time that an issuer has for one answer. It is not for all of them: an
// issuer that takes 5 s for each is slow, not away.
const fetchTimeout = 10 * time.Second

// An issuer fetches documents of the issuer of tokens. The client decides which URLs it may
// fetch.
type issuer struct {
	name   string
	url    *url.URL // of that name
	client *fetch.Client
}

// issuerMetadata is an issuer's metadata.
//
// Spec: RFC 8414, 2; OpenID Connect Discovery, 3.
type issuerMetadata struct {
	Issuer        string `json:"issuer"`
	JWKS          string `json:"jwks_uri"`
	Introspection string `json:"introspection_endpoint"`
}

func newIssuer(name string, client *fetch.Client) (*issuer, error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("the issuer is not a URL") // a space would end it in a principal
	}
	return &issuer{name, u, client}, client.Check(context.Background(), name)
}

// metadata fetches the issuer's metadata. Its URL depends on the kind of issuer.
//
// Spec: 2026-07-28, basic/authorization, Authorization Server Metadata Discovery.
func (i *issuer) metadata(ctx context.Context) (*issuerMetadata, error) {
	var failed error
	for _, from := range spec.IssuerMetadataURLs(i.url) { // until one is not answered at all
		m := &issuerMetadata{}
		err := i.get(ctx, from, m)
		switch {
		case err == nil && m.Issuer == i.name:
			return m, nil
		case err == nil:
			err = fmt.Errorf("%s is of the issuer %q", from, m.Issuer)
		}
		failed = errors.Join(failed, err)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return nil, failed
}

// get fetches a JSON document. An error has the URL without a password.
func (i *issuer) get(ctx context.Context, from string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	err := i.client.JSON(ctx, from, into)
	if u, invalid := url.Parse(from); err != nil && invalid == nil {
		return fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	return err
}
