package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// programs has the mcpbridge that the tests start, and modern-go.
var programs rig.Binaries

func TestMain(m *testing.M) {
	if user := os.Getenv("BROWSE_AS"); user != "" {
		if err := browse(os.Args[1], user); err != nil {
			fmt.Fprintln(os.Stderr, "browser:", err)
			os.Exit(1)
		}
		return
	}
	trustDocuments()
	rig.Parallel(64) // most of them wait, for a minute to pass or for their turn
	os.Exit(rig.Main(m, "modern-go", &programs))
}

// turns are taken by tests that compute.
var turns sync.Mutex

// takeTurn has a test run beside those that wait, after the others that take turns.
func takeTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	turns.Lock()
	t.Cleanup(turns.Unlock)
}

// peer returns the absolute path of a file of interop/.
func peer(path string) string {
	abs, err := filepath.Abs("../../" + path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return abs
}

func node(file string, argv ...string) []string {
	return append([]string{peer("node/node_modules/.bin/node"), peer(file)}, argv...)
}

// start starts a program that listens at addr, and waits for it.
func start(t testing.TB, addr string, env []string, argv ...string) *process.Process {
	t.Helper()
	p, err := process.Start(filepath.Base(argv[len(argv)-1]), env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", argv[len(argv)-1], p.Log())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), process.StartTime)
	defer cancel()
	if err := p.Ready(ctx, "http://"+addr+"/", 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// documents serves files of metadata over https, as client ids want it. The programs that
// fetch them trust its certificate by way of the file ca; key is its key.
type documents struct {
	*httptest.Server
	ca, key string
}

func newDocuments(t testing.TB) *documents {
	t.Helper()
	dir := t.TempDir()
	d := &documents{ca: filepath.Join(dir, "ca.pem"), key: filepath.Join(dir, "key.pem")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{name}", d.serve)
	d.Server = httptest.NewUnstartedServer(mux)
	d.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	d.StartTLS()
	t.Cleanup(d.Close)
	key, err := x509.MarshalPKCS8PrivateKey(d.TLS.Certificates[0].PrivateKey)
	err = errors.Join(err, writePEM(d.ca, "CERTIFICATE", d.Certificate().Raw), writePEM(d.key, "PRIVATE KEY", key))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// trustDocuments has the test's own requests trust the certificate of documents, which is
// always the same.
func trustDocuments() {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// id returns the URL of a client's document, whose redirect URI has any port.
func (d *documents) id(name string) string { return d.URL + "/" + name }

func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // the test's own connection
		"client_id":                  d.id(r.PathValue("name")),
		"client_name":                r.PathValue("name"),
		"application_type":           "native",
		"redirect_uris":              []string{redirect, "http://127.0.0.1/", "http://127.0.0.1/callback"},
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": "none",
	})
}

// An issuer is the authorization server.
type issuer struct {
	url  string
	docs *documents
	*process.Process
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	addr, docs := rig.FreeAddr(t), newDocuments(t)
	_, port, _ := net.SplitHostPort(addr)
	p := start(t, addr, []string{"NODE_EXTRA_CA_CERTS=" + docs.ca, "NODE_NO_WARNINGS=1"}, node("node/authorization-server.mjs", port)...)
	return &issuer{url: "http://" + addr, docs: docs, Process: p}
}

// An event is what happened at the issuer.
type event struct {
	Kind, Client, Error, Description string
	Scope, Resource                  string
	ClientName                       string `json:"client_name"`
	GrantType                        string `json:"grant_type"`
	CodeChallengeMethod              string `json:"code_challenge_method"`
	RedirectURI                      string `json:"redirect_uri"`
}

// set changes what the issuer does: see node/authorization-server.mjs.
func (s *issuer) set(t testing.TB, settings map[string]any) {
	t.Helper()
	if _, err := s.control(settings); err != nil {
		t.Fatal(err)
	}
}

// events returns what happened so far of a kind, with a grant type unless that is "".
func (s *issuer) events(t testing.TB, kind, grant string) (of []event) {
	t.Helper()
	all, err := s.control(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == kind && (grant == "" || e.GrantType == grant) {
			of = append(of, e)
		}
	}
	return of
}

func (s *issuer) control(settings map[string]any) (all []event, err error) {
	method, body := http.MethodGet, new(bytes.Buffer)
	if settings != nil {
		method = http.MethodPost
		err = json.NewEncoder(body).Encode(settings)
	}
	req, err2 := http.NewRequest(method, s.url+"/control", body)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the control of the authorization server answered %s", res.Status)
	}
	return all, json.NewDecoder(res.Body).Decode(&all)
}
