package engines

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/natskv"
)

// A tenant is an account of NATS with JetStream, and the user that replicas are in it.
type tenant struct {
	t       *testing.T
	options *server.Options
	account nkeys.KeyPair
}

// newTenant returns a server's options by which it knows an operator's accounts alone.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	operator, account, system := pair(t, nkeys.CreateOperator), pair(t, nkeys.CreateAccount), pair(t, nkeys.CreateAccount)
	oc := jwt.NewOperatorClaims(public(t, operator))
	oc.SystemAccount = public(t, system)
	ac := jwt.NewAccountClaims(public(t, account))
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	sc := jwt.NewAccountClaims(public(t, system))
	resolver := new(server.MemAccResolver)
	for _, c := range []*jwt.AccountClaims{ac, sc} {
		text, err := c.Encode(operator)
		if err == nil {
			err = resolver.Store(c.Subject, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := oc.Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := jwt.DecodeOperatorClaims(text)
	if err != nil {
		t.Fatal(err)
	}
	return &tenant{t: t, account: account, options: &server.Options{
		ServerName: "engine", Host: "127.0.0.1", Port: freePort(t), JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: resolver, SystemAccount: public(t, system),
	}}
}

// user writes a file of credentials.
func (n *tenant) user(path string) {
	n.t.Helper()
	user := pair(n.t, nkeys.CreateUser)
	text, err := jwt.NewUserClaims(public(n.t, user)).Encode(n.account)
	if err != nil {
		n.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		n.t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, creds, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func pair(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	p, err := create()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func public(t *testing.T, p nkeys.KeyPair) string {
	t.Helper()
	text, err := p.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A NATS that wants a certificate and credentials, which begins as NATS does, or with TLS.
func TestNATSOverTLS(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"upgraded": false, "handshake first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, n := newVault(t), newTenant(t)
			n.options.TLSHandshakeFirst = first
			n.serve(v)
			creds, stranger := filepath.Join(t.TempDir(), "own.creds"), filepath.Join(t.TempDir(), "other.creds")
			n.user(creds)
			newTenant(t).user(stranger)
			url := fmt.Sprintf("tls://127.0.0.1:%d", n.options.Port)
			if first {
				url += "?handshake_first=true"
			}
			open := func(files certs.Files, name, creds string) replicas.Engine {
				quiet := slog.New(slog.DiscardHandler)
				s, err := natskv.Open(natskv.Options{URL: parse(t, url), TLS: files.Client(name, quiet), Credentials: creds, Prefix: "test", Name: "test", Logger: quiet})
				if err != nil {
					t.Fatal(err)
				}
				return closing(t, member.New(s, member.Options{Logger: quiet}))
			}
			bare := files(v.own)
			bare.Cert, bare.Key = "", ""
			late := filepath.Join(t.TempDir(), "late.creds")
			newTenant(t).user(late)
			refused := map[string]replicas.Engine{
				"another authority":              open(files(newVault(t).own), serverName, creds),
				"another name":                   open(files(v.own), "other.example", creds),
				"no certificate":                 open(bare, serverName, creds),
				"credentials of another account": open(files(v.own), serverName, stranger),
				"credentials that are replaced":  open(files(v.own), serverName, late),
			}
			join(t, refused)
			g := newGroup(t, func() replicas.Engine { return open(files(v.own), serverName, creds) })
			g.recover(60*time.Second, g.names())
			refuse(t, refused)
			n.user(late)
			eventually(t, patience, "credentials that were replaced are used", func() bool { return refused["credentials that are replaced"].View().Away.IsZero() })
		})
	}
}

// serve starts a server with the certificates of a vault.
func (n *tenant) serve(v *vault) {
	n.t.Helper()
	cert, err := tls.LoadX509KeyPair(files(v.dir).Cert, files(v.dir).Key)
	if err != nil {
		n.t.Fatal(err)
	}
	n.options.TLS, n.options.TLSVerify, n.options.TLSTimeout = true, true, 5
	n.options.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: bridgetest.Pool(v.clients), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	s, err := server.NewServer(n.options)
	if err != nil {
		n.t.Fatal(err)
	}
	s.Start()
	n.t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(60 * time.Second) {
		n.t.Fatal("nats-server is not ready")
	}
}
