package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// writeCertificates writes cert.pem, key.pem and ca.pem, with modes, beside c.yaml.
func writeCertificates(t *testing.T) {
	t.Helper()
	bridgetest.NewAuthority(t, "a").Files(".", bridgetest.Leaf{})
}

func TestBorderMistakes(t *testing.T) {
	server := func(s string) string { return "servers:\n  a:\n    " + s + "\n" }
	for _, tt := range []struct{ name, in, want string }{
		{"certificate without a key", "tls: {cert: cert.pem}\n" + notebook, "c.yaml:1: tls.key: is missing: a certificate is of no use without its private key; name its file"},
		{"key without a certificate", "tls: {key: key.pem}\n" + notebook, "c.yaml:1: tls.cert: is missing: key is the private key of a certificate; name its file"},
		{"clients' authorities alone", "tls:\n  client_ca: ca.pem\n" + notebook, "c.yaml:2: tls.client_ca: has no effect without cert and key; set them, or remove it"},
		{"no such file", "tls:\n  cert: none.pem\n  key: key.pem\n" + notebook, "c.yaml:1: tls: stat none.pem: no such file or directory; correct its path, which begins in the folder of the configuration, or make it"},
		{"not a certificate", "tls: {cert: key.pem, key: key.pem}\n" + notebook, `c.yaml:1: tls: key.pem and key.pem are no certificate and its key: tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched`},
		{"who may be without a certificate", "tls: {client_auth: sometimes}\n" + notebook, `c.yaml:1: tls.client_auth: "sometimes" is unknown; write require or optional`},
		{"a server's key without a certificate", server("url: https://h\n    tls: {key: key.pem}"), "c.yaml:4: servers.a.tls.cert: is missing: key is the private key of a certificate; name its file"},
		{"TLS of a server without", server("url: http://h\n    tls: {ca: ca.pem}"), "c.yaml:4: servers.a.tls: has no effect, since url is without TLS; write https://, or remove it"},
		{"TLS of a WebSocket without", server("url: ws://h\n    tls: {ca: ca.pem}"), "c.yaml:4: servers.a.tls: has no effect, since url is without TLS; write wss://, or remove it"},
		{"TLS of a command", server("command: x\n    tls: {ca: ca.pem}"), "c.yaml:4: servers.a.tls: belongs to servers with url; this one has command, so remove it"},
		{"a name with a port", server("url: https://h\n    tls: {server_name: 'h:443'}"), `c.yaml:4: servers.a.tls.server_name: "h:443" is not a host name; write one such as mcp.internal.example, without a port`},
		{"client certificates without an authority", "auth: {mtls: {principal: san}}\ntls: {cert: cert.pem, key: key.pem}\n" + notebook, "c.yaml:3: servers.notebook.auth: its clients show certificates, and nothing says whose are valid; write tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem} at the top"},
		{"short token", "admin_token: s3cret\n" + notebook, "c.yaml:1: admin_token: is no token of at least 16 characters without spaces; write a random one, as openssl rand -hex 32 prints one"},
		{"token with a space", "admin_token: 's3cret s3cret s3cret'\n" + notebook, "c.yaml:1: admin_token: is no token of at least 16 characters without spaces; write a random one, as openssl rand -hex 32 prints one"},
		{"socket without a whole path", "admin: unix:admin.sock\n" + notebook, `c.yaml:1: admin: "unix:admin.sock" is not a socket; write unix: and a path from the root of at most 103 bytes, as in unix:/run/mcpbridge/admin.sock`},
		{"socket of too long a path", "admin: unix:/" + strings.Repeat("x", 103) + "\n" + notebook, `c.yaml:1: admin: "unix:/` + strings.Repeat("x", 103) + `" is not a socket; write unix: and a path from the root of at most 103 bytes, as in unix:/run/mcpbridge/admin.sock`},
		{"no address", "admin: localhost\n" + notebook, `c.yaml:1: admin: "localhost" is not an address; write host:port, as in 127.0.0.1:2527, or unix: and the path of a socket`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.in)
			writeCertificates(t)
			_, _, err := Load(Options{Path: path})
			if err == nil || err.Error() != tt.want {
				t.Errorf("Load(%q) =\n%v\nwant\n%s", tt.in, err, tt.want)
			}
		})
	}
}

// Files of certificates that can't be used are among those of the mistake, which mending them mends.
// Those in use are none of the configuration's: they are reread without it.
func TestFilesOfCertificates(t *testing.T) {
	for file, want := range map[string]string{"none.pem": "c.yaml ca.pem key.pem none.pem", "cert.pem": "c.yaml"} {
		path := write(t, "tls: {cert: "+file+", key: key.pem, client_ca: ca.pem}\n"+notebook)
		writeCertificates(t)
		c, _, err := Load(Options{Path: path})
		var files []string
		if mistakes := (*Error)(nil); errors.As(err, &mistakes) {
			files = mistakes.Files
		} else if err == nil {
			files = c.Files()
		}
		slices.Sort(files)
		if got := strings.Join(files, " "); got != want {
			t.Errorf("with %s as the certificate the files are %s (%v), want %s", file, got, err, want)
		}
	}
}

// What works is told what others can read of it.
func TestBorderWarnings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing of other users")
	}
	server := func(s string) string { return "servers:\n  a:\n    " + s + "\n" }
	const exposed = "c.yaml: can be read by every user of this machine, and KEY in it is a secret; run chmod 600 c.yaml, or write ${VARIABLE} or ${file:PATH} instead"
	const token = "admin_token: 0123456789abcdef\n"
	for _, tt := range []struct {
		name, in string
		mode     os.FileMode // of all files
		want     string      // KEY stands for what precedes |; empty for none
	}{
		{"nothing to hide", notebook, 0o644, ""},
		{"a token", token + notebook, 0o644, "admin_token|" + exposed},
		{"a token in a file of its owner's", token + notebook, 0o600, ""},
		{"a token in a file of its owner's and a group's", token + notebook, 0o640, ""},
		{"a token from elsewhere", "admin_token: ${ADMIN_TOKEN}\n" + notebook, 0o644, ""},
		{"a state key", "state_keys: [0123456789abcdef]\n" + notebook, 0o644, "state_keys.0|" + exposed},
		{"a header", server("url: https://h\n    headers: {Accept-Language: en, Authorization: Bearer x}"), 0o644, "servers.a.headers.Authorization|" + exposed},
		{"a header that is none", server("url: https://h\n    headers: {Accept-Language: en}"), 0o644, ""},
		{"a variable", server("command: x\n    env: {API_KEY: x, MODE: y}"), 0o644, "servers.a.env.API_KEY|" + exposed},
		{"an argument", server("command: x\n    args: [--token, x]"), 0o644, "servers.a.args|" + exposed},
		{"an argument from elsewhere", server("command: x\n    args: [--token, '${ADMIN_TOKEN}']"), 0o644, ""},
		{"a query", server("url: https://h/mcp?api_key=x"), 0o644, "servers.a.url|" + exposed},
		{"a private key", "tls: {cert: cert.pem, key: key.pem}\n" + notebook, 0o644, "c.yaml:1: tls.key: can be read by every user of this machine; run chmod 600 key.pem"},
		{"a file of variables", server("command: x\n    env_file: env"), 0o644, "c.yaml:4: servers.a.env_file: can be read by every user of this machine and holds secrets; run chmod 600 env"},
		{"a token in another file", "admin_token: ${file:secret}\n" + notebook, 0o644, "c.yaml:1: admin_token: is in secret, which every user of this machine can read; run chmod 600 secret"},
		{"a token in another file of its owner's", "admin_token: ${file:secret}\n" + notebook, 0o600, ""},
		{"a header in another file", server("url: https://h\n    headers: {Authorization: 'Bearer ${file:secret}', Accept-Language: '${file:secret}'}"), 0o644, "c.yaml:4: servers.a.headers.Authorization: is in secret, which every user of this machine can read; run chmod 600 secret"},
		{"an argument in another file", server("command: x\n    args: [--token, '${file:secret}']"), 0o644, "c.yaml:4: servers.a.args.1: is in secret, which every user of this machine can read; run chmod 600 secret"},
		{"a query in another file", server("url: 'https://h/mcp?api_key=${file:secret}'"), 0o644, "c.yaml:3: servers.a.url: is in secret, which every user of this machine can read; run chmod 600 secret"},
		{"no secret in another file", server("command: x\n    env: {MODE: '${file:secret}'}"), 0o644, ""},
		{"a token of a disabled server in another file", server("url: https://h\n    disabled: true\n    headers: {Authorization: '${file:secret}'}") + "  b: {builtin: notebook}\n", 0o644, ""},
		{"credentials without TLS", server("url: http://docs.example.com\n    headers: {X-Api-Key: '${ADMIN_TOKEN}'}"), 0o600, "c.yaml:3: servers.a.url: is http://, and credentials are sent to it, which others can read on the way; write https:// if the server has TLS"},
		{"credentials without TLS, over a WebSocket", server("url: ws://docs.example.com/?token=x"), 0o600, "c.yaml:3: servers.a.url: is ws://, and credentials are sent to it, which others can read on the way; write wss:// if the server has TLS"},
		{"a credential from upstream_auth without TLS", server("url: http://docs.example.com\n    upstream_auth: {static: {token: '${ADMIN_TOKEN}'}}"), 0o600, "c.yaml:3: servers.a.url: is http://, and credentials are sent to it, which others can read on the way; write https:// if the server has TLS"},
		{"a token of upstream_auth", server("url: https://docs.example.com\n    upstream_auth: {static: {token: 0123456789abcdef}}"), 0o644, "servers.a.upstream_auth.static.token|" + exposed},
		{"a private key for an issuer", server("url: https://docs.example.com\n    upstream_auth: {client_credentials: {issuer: 'https://id.example.com', client_id: x, private_key: key.pem}}"), 0o644, "c.yaml:4: servers.a.upstream_auth.client_credentials.private_key: can be read by every user of this machine; run chmod 600 key.pem"},
		{"credentials on this machine", server("url: http://127.0.0.1:9\n    headers: {X-Api-Key: x}"), 0o600, ""},
		{"no credentials", server("url: http://docs.example.com"), 0o600, ""},
		{"credentials of a disabled server", server("url: http://docs.example.com\n    disabled: true\n    headers: {X-Api-Key: x}") + "  b: {builtin: notebook}\n", 0o600, ""},
		{"a client's token", "auth: {tokens: [{name: alice, token: 0123456789abcdef}]}\n" + notebook, 0o644, "auth.tokens.0.token|" + exposed},
		{"digests of clients' tokens", "auth: {tokens: [{name: alice, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]}\n" + notebook, 0o644, ""},
		{"clients' tokens without TLS", "listen: 0.0.0.0:1\nauth: {tokens: [{name: alice, token: '${ADMIN_TOKEN}'}]}\n" + notebook, 0o600, "c.yaml:1: listen: can be reached from other machines without TLS, so that others can read the credentials of clients on the way; set tls, or trusted_proxies if a proxy in front has TLS"},
		{"clients' tokens behind a proxy", "listen: 0.0.0.0:1\ntrusted_proxies: [10.0.0.1]\nauth: {tokens: [{name: alice, token: '${ADMIN_TOKEN}'}]}\n" + notebook, 0o600, ""},
		{"clients' tokens with TLS", "listen: 0.0.0.0:1\ntls: {cert: cert.pem, key: key.pem}\nauth: {tokens: [{name: alice, token: '${ADMIN_TOKEN}'}]}\n" + notebook, 0o600, ""},
		{"replicas without TLS", "replicas: {peers: 'dns://r:1', keys: ['${PEER_KEY}'], peer: '10.0.0.7:2528'}\n" + notebook, 0o600, "c.yaml:1: replicas.peer: can be reached from other machines without TLS, so that others can read and alter what replicas forward on the way, with the credentials of clients; set tls, unless the network encrypts it"},
		{"replicas with TLS", "replicas: {peers: 'dns://r:1', keys: ['${PEER_KEY}'], peer: '10.0.0.7:2528', tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem}}\n" + notebook, 0o600, ""},
		{"replicas on this machine", "replicas: {peers: 'dns://r:1', keys: ['${PEER_KEY}'], peer: '127.0.0.1:2528'}\n" + notebook, 0o600, ""},
		{"anonymous clients without TLS", "listen: 0.0.0.0:1\nallow_anonymous: true\n" + notebook, 0o600, ""},
		{"a token without TLS", "admin: 0.0.0.0:1\n" + token + notebook, 0o600, "c.yaml:2: admin_token: can be read on its way to admin, which is beyond this machine and without TLS; set tls"},
		{"a token with TLS", "admin: 0.0.0.0:1\ntls: {cert: cert.pem, key: key.pem}\n" + token + notebook, 0o600, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.in)
			writeCertificates(t)
			if err := os.WriteFile("env", []byte("DB_PASSWORD=x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("secret", []byte("0123456789abcdef\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{path, "key.pem", "env", "secret"} {
				if err := os.Chmod(name, tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			_, warnings, err := Load(Options{Path: path, Environ: []string{"ADMIN_TOKEN=0123456789abcdef", "PEER_KEY=VbY7q+Ws0ZtR2gKd8fq2mz0x"}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			want := tt.want
			if strings.Contains(want, "is in secret") && !value.OthersReadSecret("secret") {
				want = "" // the folder for temporary files is in memory
			}
			if key, text, ok := strings.Cut(want, "|"); ok {
				want = strings.Replace(text, "KEY", key, 1)
			}
			if strings.Join(got, "\n") != want {
				t.Errorf("warnings =\n%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		})
	}
}

// Paths are relative to the configuration, and its secrets known.
func TestTLSFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key, ca := bridgetest.NewAuthority(t, "a").Files(dir, bridgetest.Leaf{})
	path := filepath.Join(dir, "c.yaml")
	text := "admin: unix:/run/admin.sock\nadmin_token: 0123456789abcdef\ntls: {cert: cert.pem, key: ~/key.pem, client_ca: ca.pem, client_auth: optional}\nservers:\n  a: {url: 'https://h', tls: {ca: ca.pem, cert: " + cert + ", key: key.pem, server_name: x.example}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := Load(Options{Path: path, Environ: []string{"HOME=" + dir}})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load = %v, %v", warnings, err)
	}
	if got, want := c.TLS, (TLS{Cert: cert, Key: key, ClientCA: ca, ClientAuth: "optional"}); got != want {
		t.Errorf("tls = %+v, want %+v", got, want)
	}
	if got, want := c.Servers[0].TLS, (ServerTLS{CA: ca, Cert: cert, Key: key, ServerName: "x.example"}); got != want {
		t.Errorf("tls of the server = %+v, want %+v", got, want)
	}
	if c.AdminSocket() != "/run/admin.sock" || c.AdminTLS() {
		t.Errorf("the admin socket is %q, with TLS: %v", c.AdminSocket(), c.AdminTLS())
	}
	if s := c.Secrets(); len(s) == 0 || s[0] != "0123456789abcdef" {
		t.Errorf("Secrets() = %q, want the token", s)
	}
}

// Rules that deny resources say what they can't do.
func TestDenyOfOtherSchemesIsAHint(t *testing.T) {
	for in, want := range map[string]string{
		"default: allow, rules: [{deny: {resources: ['note://a', 'db:*']}}]":                     "servers.a.policy.rules.0.deny.resources.0: is a hint: ",
		"default: allow, rules: [{deny: {resources: ['file:///a', 'HTTPS://h/*', 'db:*']}}]":     "servers.a.policy.rules.0.deny.resources.2: is a hint: ",
		"default: allow, rules: [{deny: {resources: ['file:///a', 'ws://h/*', '*']}}]":           "",
		"default: deny, rules: [{deny: {resources: ['note://a']}}, {allow: {resources: ['*']}}]": "",
		"default: allow, rules: [{allow: {resources: ['note://a']}}]":                            "",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte("servers: {a: {builtin: notebook, policy: {"+in+"}}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := Load(Options{Path: path})
		if err != nil || (len(warnings) > 0) != (want != "") || len(warnings) > 0 && !strings.Contains(warnings[0].String(), want) {
			t.Errorf("Load of %s = %v, %v, want %q", in, warnings, err, want)
		}
	}
}
