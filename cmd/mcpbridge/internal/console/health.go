package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// maxHealth bounds a reply about health, in bytes. That of /readyz has a line for each server.
const maxHealth = 4 << 20

// An Address is where the admin address of a process is. Either Socket or URL is set.
type Address struct {
	URL    string // as in http://127.0.0.1:2527
	Socket string // the path of a Unix socket
	Cert   string // the file of the certificate that an https URL has
}

// Ask asks for a path, /healthz or /readyz, and returns the status that the process tells,
// as in ready. It returns an error if the process does not answer, or answers that it is
// not well.
func Ask(ctx context.Context, a Address, path string) (string, error) {
	t, url, where := a.transport()
	t.DisableKeepAlives = true
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return "", fmt.Errorf("%s is not an address that can be asked: %w", where, err)
	}
	c := http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return "", fmt.Errorf("mcpbridge does not answer at %s: %w", where, reason(err))
	}
	defer func() { _ = resp.Body.Close() }()
	return judge(resp, where)
}

// transport returns what reaches the address, the URL to ask with it, and what the address is
// called.
func (a Address) transport() (t *http.Transport, url, where string) {
	t, url, where = &http.Transport{Proxy: nil}, a.URL, a.URL
	if a.Socket != "" {
		url, where = "http://localhost", "unix:"+a.Socket
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", a.Socket)
		}
	}
	if a.Cert != "" {
		t.TLSClientConfig = onlyCertificate(a.Cert)
	}
	return t, url, where
}

// judge reads what the process says of itself.
func judge(resp *http.Response, where string) (string, error) {
	var said struct{ Status string }
	err := json.NewDecoder(io.LimitReader(resp.Body, maxHealth)).Decode(&said)
	switch {
	case err != nil || said.Status == "":
		return "", fmt.Errorf("%s answers %s, and not as mcpbridge does; is admin the address of another program?", where, resp.Status)
	case resp.StatusCode != http.StatusOK:
		return said.Status, fmt.Errorf("mcpbridge at %s answers %s: %q", where, resp.Status, said.Status)
	}
	return said.Status, nil
}

// reason shortens the errors that a stopped process causes.
func reason(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("it took too long; --timeout allows more")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused; is it running, with this configuration?")
	case errors.Is(err, os.ErrNotExist):
		return errors.New("there is no such socket; is it running, with this configuration?")
	}
	return err
}

// onlyCertificate accepts the certificate of a file, whatever its name and its dates: the
// process is asked by an address of this machine, which no certificate has to name.
func onlyCertificate(file string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection compares
		VerifyConnection: func(s tls.ConnectionState) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			block, _ := pem.Decode(text)
			if block == nil || !bytes.Equal(block.Bytes, s.PeerCertificates[0].Raw) {
				return fmt.Errorf("the certificate is not that of %s", file)
			}
			return nil
		},
	}
}
