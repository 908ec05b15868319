package engines

import (
	"net/url"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

// password is one that a URL can't have as it is.
const password = "open/sesame?1"

var user = url.UserPassword("", password).String() + "@"

func TestRedis(t *testing.T) {
	t.Parallel()
	replicastest.Suite(t, nil, func(t *testing.T) replicastest.World {
		w := &redisWorld{t: t, redis: newRedis(t)}
		w.Start(false)
		return w
	})
}

// redisWorld is one redis-server that writes each change to its disk.
type redisWorld struct {
	t     *testing.T
	redis *process
}

func (w *redisWorld) Start(empty bool) { w.redis.start(empty) }
func (w *redisWorld) Stop()            { w.redis.stop() }

func (w *redisWorld) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	p := newProxy(t, w.redis.port)
	return redisEngine(t, rediskv.Options{URL: parse(t, "redis://"+user+p.addr+"/2")}), p.Stall
}

// redisEngine is what a replica has.
func redisEngine(t *testing.T, o rediskv.Options) replicas.Engine {
	t.Helper()
	o.Prefix, o.Name, o.Logger = "test", "test", logger()
	return closing(t, member.New(rediskv.Open(o), member.Options{Logger: o.Logger}))
}
