package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	// maxDocument limits a response of an issuer, in bytes.
	maxDocument = 1 << 20
	// fetchTimeout limits the time to fetch it.
	fetchTimeout = 10 * time.Second
)

// An issuer fetches documents of the issuer of tokens: over https, or from loopback if the
// issuer is on loopback.
type issuer struct {
	url    string
	client *http.Client
	local  bool // the issuer is on loopback, so http is allowed there
}

// issuerMetadata is an issuer's metadata.
//
// Spec: RFC 8414, 2; OpenID Connect Discovery, 3.
type issuerMetadata struct {
	Issuer        string `json:"issuer"`
	JWKS          string `json:"jwks_uri"`
	Introspection string `json:"introspection_endpoint"`
}

func newIssuer(text string, client *http.Client) (*issuer, error) {
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the issuer is not a URL")
	}
	i := &issuer{url: text, client: &c, local: u.Scheme == "http" && isLoopback(u.Hostname())}
	return i, i.check(text)
}

// check refuses a URL whose response an attacker on the network could change.
func (i *issuer) check(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return errors.New("not a URL")
	case u.Scheme == "https" || i.local && u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s is not of https", u.Redacted())
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// metadata fetches the issuer's metadata. Its URL depends on the kind of issuer.
//
// Spec: 2026-07-28, basic/authorization, Authorization Server Metadata Discovery.
func (i *issuer) metadata(ctx context.Context) (*issuerMetadata, error) {
	var failed error
	for _, from := range i.wellKnown() {
		m := &issuerMetadata{}
		err := i.get(ctx, from, m)
		switch {
		case err == nil && m.Issuer == i.url:
			return m, nil
		case err == nil:
			err = fmt.Errorf("%s is of the issuer %q", from, m.Issuer)
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (i *issuer) wellKnown() []string {
	u, _ := url.Parse(i.url) // newIssuer has checked it
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	all := []string{origin + "/.well-known/oauth-authorization-server" + path, origin + "/.well-known/openid-configuration" + path}
	if path != "" {
		all = append(all, origin+path+"/.well-known/openid-configuration")
	}
	return all
}

// get fetches a JSON document.
func (i *issuer) get(ctx context.Context, from string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return errors.New("not a URL")
	}
	return i.do(req, into)
}

// do sends a request, and reads the response, a JSON document.
func (i *issuer) do(req *http.Request, into any) error {
	if err := i.check(req.URL.String()); err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := i.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing more is read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", req.URL.Redacted(), err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", req.URL.Redacted(), resp.Status)
	case len(text) > maxDocument:
		return fmt.Errorf("%s: larger than %d bytes", req.URL.Redacted(), maxDocument)
	case json.Unmarshal(text, into) != nil:
		return fmt.Errorf("%s: not the expected JSON", req.URL.Redacted())
	}
	return nil
}
