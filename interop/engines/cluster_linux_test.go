package engines

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	replicastest.Suite(t, nil, func(t *testing.T) replicastest.World {
		w := newCluster(t, 3, 0)
		w.Start(false)
		return w
	})
}

// cluster is a cluster of Redis.
type cluster struct {
	t         *testing.T
	redis     []*process
	followers int  // of each master
	made      bool // its servers know each other
}

func newCluster(t *testing.T, masters, followers int) *cluster {
	t.Helper()
	w := &cluster{t: t, followers: followers}
	for range masters * (1 + followers) {
		w.redis = append(w.redis, newRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(freePort(t)), "--cluster-node-timeout", "1500"))
	}
	return w
}

func (w *cluster) Start(empty bool) {
	w.t.Helper()
	var addrs []string
	for _, p := range w.redis {
		p.start(empty)
		addrs = append(addrs, p.addr())
	}
	if empty || !w.made {
		w.made = true
		w.redis[0].ask(append(append([]string{"--cluster", "create"}, addrs...), "--cluster-replicas", strconv.Itoa(w.followers), "--cluster-yes")...)
	}
	for _, p := range w.redis {
		eventually(w.t, patience, "the cluster is whole", func() bool {
			text, err := p.try("cluster", "info")
			return err == nil && strings.Contains(text, "cluster_state:ok")
		})
	}
}

func (w *cluster) Stop() {
	for _, p := range w.redis {
		p.stop()
	}
}

func (w *cluster) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	n := newNetwork(t)
	return redisEngine(t, rediskv.Options{URL: parse(t, w.url()), Dial: n.dial}), n.stall
}

func (w *cluster) url() string {
	return "redis+cluster://" + user + w.redis[0].addr() + "," + w.redis[1].addr()
}
