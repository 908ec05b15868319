package natskv

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// copies is how many servers of a cluster keep a bucket.
	copies = 3
	// described begins the descriptions of buckets that this program makes.
	described = "replicas of mcpbridge: "
)

// spread has a cluster keep buckets on three servers that are on one, since it had no others
// when they were made: without that server they would be gone. Buckets that somebody else made
// stay as they are.
func (s *Store) spread(ctx context.Context, all ...jetstream.KeyValue) {
	if s.nc.ConnectedClusterName() == "" {
		return
	}
	for _, kv := range all {
		status, err := kv.Status(ctx)
		if err != nil {
			continue // whatever is wrong, somebody else will say so
		}
		conf := status.Config()
		if conf.Replicas >= copies || !strings.HasPrefix(conf.Description, described) {
			continue
		}
		conf.Replicas = copies
		if _, err = s.js.UpdateKeyValue(ctx, conf); err != nil {
			s.log.Debug("a bucket of NATS stays on one server", "bucket", kv.Bucket(), "error", err)
			continue
		}
		s.log.Info("a bucket of NATS is kept by three servers", "bucket", kv.Bucket())
	}
}
