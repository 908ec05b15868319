package gateway

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// foreign is an engine of another module.
type foreign struct{}

// Open implements Engine.
func (foreign) Open(string, *slog.Logger) (any, error) { return foreign{}, nil }

// Whoever has no engine, or none that can be used, reads which package has one.
func TestReplicaMistakes(t *testing.T) {
	const packages = "github.com/mcpbridge/mcpbridge/gateway/replicas/"
	for name, tt := range map[string]struct {
		replicas Replicas
		want     string
	}{
		"no engine":         {Replicas{}, "mcpbridge: Replicas: want exactly one of Engine and Peers; for an Engine import " + packages + "nats or " + packages + "redis"},
		"both":              {Replicas{Engine: foreign{}, Peers: "dns://r:1"}, "mcpbridge: Replicas: want exactly one of Engine and Peers; for an Engine import " + packages + "nats or " + packages + "redis"},
		"a NATS for peers":  {Replicas{Peers: "nats://u:s3cret@n:4222"}, "mcpbridge: Replicas: Peers has the URL of an engine; import " + packages + "nats, and set Engine to its Engine with this URL"},
		"a Redis for peers": {Replicas{Peers: "redis+cluster://u:s3cret@r"}, "mcpbridge: Replicas: Peers has the URL of an engine; import " + packages + "redis, and set Engine to its Engine with this URL"},
		"too fast":          {Replicas{Engine: foreign{}, Heartbeat: time.Millisecond}, "mcpbridge: Replicas: Heartbeat is 1ms; set it to 1s at least, and 10s at most"},
		"too slow":          {Replicas{Engine: foreign{}, Heartbeat: time.Minute}, "mcpbridge: Replicas: Heartbeat is 1m0s; set it to 1s at least, and 10s at most"},
		"without an engine": {Replicas{Peers: "dns://r:1", Heartbeat: 2 * time.Second}, "mcpbridge: Replicas: Heartbeat is for an Engine, and there is none; leave it out"},
		"one of others":     {Replicas{Engine: foreign{}}, "mcpbridge: replicas: the engine gateway.foreign is not one of mcpbridge; import " + packages + "nats or " + packages + "redis, and use its Engine"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.replicas.Keys = []string{"0123456789abcdef"}
			g, err := New(Options{Replicas: &tt.replicas})
			if err == nil {
				_ = g.Shutdown(context.Background())
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("New = %v\nwant %s", err, tt.want)
			}
		})
	}
}
