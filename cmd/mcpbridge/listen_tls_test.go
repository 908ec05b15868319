package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A stream over a WebSocket does not go on without the certificate that it needs, and says so.
func TestListenEndsWithItsCertificate(t *testing.T) {
	t.Parallel() // it waits
	path, a := secured(t, "tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem}\nauth: {mtls: {principal: san}}\nservers: {notebook: {builtin: notebook}}\n")
	s := serve(t, nil, "-c", path)
	end := time.Now().Add(8 * time.Second).Truncate(time.Second) // by then it listens, on a busy machine too
	out := new(bridgetest.Log)
	file := issued(t, a, "wss"+strings.TrimPrefix(s.Endpoints[0].URL, "https"), bridgetest.Leaf{NotAfter: end})
	p := process{args: []string{"mcpbridge", "listen", "-c", file, "far", "--tools"}, stdout: out, stderr: out}
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	err := p.run(ctx)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "can't be reached again: opening a WebSocket") || !strings.Contains(err.Error(), "tls.cert") || time.Now().Before(end) {
		t.Errorf("listen = %v, want it to end with the certificate, and to say so", err)
	}
	if code := exitCode(err, out); code != 1 || !strings.Contains(out.String(), "acknowledged: tools") || strings.Contains(out.String(), "stopped listening") {
		t.Errorf("listen = %d, %s", code, out)
	}
}

// Who scrapes sees when each certificate expires that mcpbridge shows: to clients, to other
// replicas, and to servers. A reload counts.
func TestCertificatesAreTold(t *testing.T) {
	const files = "cert: cert.pem, key: key.pem"
	text := func(server string) string {
		return "tls: {" + files + "}\n" + server + "\n" +
			"replicas: {peers: 'dns://localhost:1', keys: ['a key of some length, as it must be'], peer: '127.0.0.1:0', advertise: '127.0.0.1:1', tls: {" + files + ", client_ca: ca.pem}}\n"
	}
	path, _ := secured(t, text("servers: {far: {url: 'https://localhost:1/mcp', tls: {"+files+"}}}"))
	s := serve(t, nil, "-c", path)
	wantCertificates(t, s.Admin, "replicas.tls.cert", "servers.far.tls.cert", "tls.cert")
	if err := os.WriteFile(path, []byte(text("servers: {notebook: {builtin: notebook}}")), 0o600); err != nil {
		t.Fatal(err)
	}
	bridgetest.Eventually(t, "the server's certificate is told no more", func() bool {
		_, body := get(t, s.Admin+"/metrics")
		return !strings.Contains(body, "servers.far.tls.cert")
	})
	wantCertificates(t, s.Admin, "replicas.tls.cert", "tls.cert")
}

func wantCertificates(t *testing.T, admin string, keys ...string) {
	t.Helper()
	const name = "mcpbridge_certificate_expiry_timestamp_seconds"
	_, body := get(t, admin+"/metrics")
	if n := strings.Count(body, name+"{"); n != len(keys) {
		t.Errorf("the metrics tell of %d certificates, want %d", n, len(keys))
	}
	for _, key := range keys {
		if !strings.Contains(body, name+`{key="`+key+`"} `) {
			t.Errorf("the metrics do not say when the certificate of %s expires", key)
		}
	}
}

// A server that is gone is waited for, and the person who waits is told why.
func TestListenSaysWhyItWaits(t *testing.T) {
	s := serve(t, nil, "-c", configFile(t, "servers: {notebook: {builtin: notebook}}"))
	out := new(bridgetest.Log)
	p := process{args: []string{"mcpbridge", "listen", "ws" + strings.TrimPrefix(s.Endpoints[0].URL, "http"), "--tools"}, stdout: out, stderr: out}
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	done := make(chan error, 1)
	go func() { done <- p.run(ctx) }()
	waitFor := func(text string) {
		t.Helper()
		for !strings.Contains(out.String(), text) {
			if ctx.Err() != nil {
				t.Fatalf("%q is missing in: %s", text, out)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	waitFor("acknowledged")
	s.stop()
	waitFor("connection refused; trying again")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("listen = %v, %s", err, out)
	}
}
