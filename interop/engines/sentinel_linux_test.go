package engines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/replicastest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	replicastest.Suite(t, nil, func(t *testing.T) replicastest.World {
		w := newSentinels(t, 2, 1)
		w.Start(false)
		return w
	})
}

// sentinels are a master of Redis, what follows it, and who watches over them.
type sentinels struct {
	t        *testing.T
	redis    []*process // the first is the master at the beginning
	sentinel []*process
}

func newSentinels(t *testing.T, redis, watch int) *sentinels {
	t.Helper()
	w := &sentinels{t: t}
	for i := range redis {
		var args []string
		if i > 0 {
			args = []string{"--replicaof", "127.0.0.1 " + fmt.Sprint(w.redis[0].port)}
		}
		w.redis = append(w.redis, newRedis(t, args...))
	}
	for range watch {
		p := newProcess(t, "--sentinel")
		p.conf = fmt.Sprintf(`sentinel monitor mymaster 127.0.0.1 %d %d
sentinel auth-pass mymaster %q
sentinel down-after-milliseconds mymaster 1000
sentinel failover-timeout mymaster 4000
sentinel parallel-syncs mymaster 2
requirepass %[4]q
sentinel sentinel-pass %[4]q
`, w.redis[0].port, watch/2+1, password, "watchman")
		w.sentinel = append(w.sentinel, p)
	}
	return w
}

func (w *sentinels) Start(empty bool) {
	w.t.Helper()
	for _, p := range append(w.redis[:len(w.redis):len(w.redis)], w.sentinel...) {
		p.start(empty)
	}
	eventually(w.t, patience, "the followers are synchronous", func() bool {
		return strings.Count(w.redis[0].ask("info", "replication"), "state=online") == len(w.redis)-1
	})
	for _, p := range w.sentinel {
		eventually(w.t, patience, "the Sentinels know each other and the followers", func() bool {
			text, err := p.as("watchman", "sentinel", "master", "mymaster")
			return err == nil && field(text, "num-slaves") == fmt.Sprint(len(w.redis)-1) &&
				field(text, "num-other-sentinels") == fmt.Sprint(len(w.sentinel)-1) && field(text, "flags") == "master"
		})
	}
}

// field returns what follows a name in a list of redis-cli.
func field(text, name string) string {
	_, after, _ := strings.Cut("\n"+text, "\n"+name+"\n")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

func (w *sentinels) Stop() {
	for _, p := range append(w.sentinel[:len(w.sentinel):len(w.sentinel)], w.redis...) {
		p.stop()
	}
}

func (w *sentinels) Engine(t *testing.T) (replicas.Engine, func(bool)) {
	n := newNetwork(t)
	return redisEngine(t, rediskv.Options{URL: parse(t, w.url(w.sentinel...)), Dial: n.dial}), n.stall
}

func (w *sentinels) url(known ...*process) string {
	var hosts []string
	for _, p := range known {
		hosts = append(hosts, p.addr())
	}
	return "redis+sentinel://" + user + strings.Join(hosts, ",") + "/2?master_name=mymaster&sentinel_password=watchman"
}
