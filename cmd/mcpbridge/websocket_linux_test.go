package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/notebook"
)

// wss goes as far as its server's certificate can be trusted.
func TestWrapSecureWebSocket(t *testing.T) {
	server := &socketServer{book: notebook.New(notebook.Options{})}
	server.Server = httptest.NewTLSServer(server)
	t.Cleanup(func() { server.Close(); server.end() })
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "wss" + strings.TrimPrefix(server.URL, "https")
	env := []string{"MCPBRIDGE_SERVERS__127_0_0_1__HEADERS__X-KEY=open sesame", "SSL_CERT_FILE=" + trusted}
	for _, tt := range []struct {
		name string
		env  []string
		want []string
	}{
		{"trusted", env, []string{`"id":1,"result":`, "saved"}},
		{"not trusted", env[:1], []string{`"id":1,"error":`, "127.0.0.1", "certificate"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := wrap(t, tt.env, url)
			w.send(modernRequest("1", "tools/call", `,"name":"edit_note","arguments":{"name":"todo","text":"x"}`))
			w.want(tt.want...)
			_ = w.in.Close()
			if err := w.end(); err != nil {
				t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
			}
		})
	}
}
