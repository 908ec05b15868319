// Command authenticator has a gateway whose clients are told apart by an authenticator of
// one's own: by a key in the header X-Api-Key, of which the program knows the SHA-256 alone.
// It takes ada-s3cret and bob-s3cret.
//
// The gateway asks the authenticator for each request, and keeps apart what different
// principals have: sessions, subscriptions and results.
//
//	go run ./examples/authenticator
//	go run ./cmd/mcpbridge call http://127.0.0.1:2526/mcp/notes -H 'X-Api-Key: ada-s3cret' read_note name=today
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/examples/internal/notes"
	"github.com/mcpbridge/mcpbridge/gateway"
)

// keys has principals by the SHA-256 of their keys. A look-up takes as long for any key
// that is wrong: what an attacker measures is about a digest, which tells nothing of a key.
type keys map[string]string

// Authenticate implements [gateway.Authenticator].
func (k keys) Authenticate(r *http.Request) (principal string, err error) {
	digest := sha256.Sum256([]byte(r.Header.Get("X-Api-Key")))
	principal, ok := k[hex.EncodeToString(digest[:])]
	if !ok {
		return "", &gateway.AuthError{Challenge: `ApiKey realm="notes"`, Reason: "the key is unknown"}
	}
	return principal, nil
}

func main() {
	address := flag.String("listen", "127.0.0.1:2526", "the host:port to listen on")
	flag.Parse()
	g, err := gateway.New(gateway.Options{
		Servers: []gateway.ServerOptions{{
			Name:    "notes",
			Handler: notes.Handler(map[string]string{"today": "buy milk"}),
			// Policies name principals: ada alone may call tools, and nobody else sees any.
			Policy: &gateway.Policy{
				Default: gateway.DefaultAllow,
				Rules: []gateway.Rule{
					{Methods: []string{"tools/call"}, Principals: []string{"ada"}},
					{Methods: []string{"tools/call"}, Deny: true},
				},
			},
		}},
		Authenticator: keys{
			"91689da8a7ee2b8ff457b38cafa6977003beb0d866cc3ea716ff8eeec8bbfe3c": "ada",
			"03126eaa2efdb0e3b8bbdcf1f1203a884ac487f08a57bb925dce12770fd226a7": "bob",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := gateway.Listen(context.Background(), *address, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening at http://%s/mcp/notes\n", listener.Addr())
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener)) // examples/embedded ends in order
}
