package engines

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A replica that starts reads all claims of the others, however many there are.
func TestNATSManyClaims(t *testing.T) {
	t.Parallel()
	const claims = 100_000
	_, open, js := newNATS(t)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "test_claims", Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	for i := range claims {
		if _, err := js.PublishAsync("$KV.test_claims."+fmt.Sprintf("%032x", i), []byte("DEADDEAD 1")); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			<-js.PublishAsyncComplete()
		}
	}
	if s, err := kv.Status(t.Context()); err != nil || s.Values() != claims {
		t.Fatalf("the bucket has %v, %v", s, err)
	}
	s := open()
	begin := time.Now()
	key := fmt.Sprintf("%032x", claims-1)
	for tries := 1; ; tries++ {
		snap, err := pollFor(t, s, key, tries > 1) // as after a failure
		if err == nil && snap.Claims[key].Value != "" {
			t.Logf("read after %v and %d tries", time.Since(begin), tries)
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("after %d tries: %v", tries, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
