package engines

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/replicas/member"
	"github.com/mcpbridge/mcpbridge/internal/replicas/rediskv"
)

// redis has a redis-server speak TLS alone, to clients with a certificate, other servers
// among them.
func (v *vault) redis(all ...*process) {
	f := files(v.dir)
	for _, p := range all {
		p.tls = []string{"--tls", "--cert", f.Cert, "--key", f.Key, "--cacert", f.CA, "--sni", serverName}
		p.args = append(p.args, "--port", "0", "--tls-cert-file", f.Cert, "--tls-key-file", f.Key, "--tls-ca-cert-file", filepath.Join(v.dir, "clients.pem"),
			"--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes")
	}
}

// documented returns the rights that docs/replicas.md gives a user of Redis.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/replicas.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile("`user (peers on >PASSWORD [^`]*)`").FindSubmatch(text)
	if rule == nil {
		t.Fatal("docs/replicas.md has no user of Redis")
	}
	return strings.Fields(strings.ReplaceAll(string(rule[1]), "PASSWORD", password))
}

// allow gives all servers the user of the documentation.
func allow(t *testing.T, all ...*process) {
	t.Helper()
	for _, p := range all {
		p.ask(append([]string{"acl", "setuser"}, documented(t)...)...)
	}
}

// secured are the engines of Redis, each by TLS, with the user of the documentation.
func secured(v *vault) map[string]func(t *testing.T) string {
	user := strings.Replace(user, ":", "peers:", 1)
	return map[string]func(t *testing.T) string{
		"one": func(t *testing.T) string {
			p := newRedis(t)
			v.redis(p)
			p.start(false)
			allow(t, p)
			return "rediss://" + user + p.addr()
		},
		"Sentinel": func(t *testing.T) string {
			w := newSentinels(t, 2, 1)
			v.redis(append(w.redis, w.sentinel...)...)
			w.Start(false)
			allow(t, w.redis...)
			return "redis" + strings.Replace(strings.Replace(strings.TrimPrefix(w.url(w.sentinel...), "redis"), "+", "s+", 1), "//:", "//peers:", 1)
		},
		"cluster": func(t *testing.T) string {
			w := newCluster(t, 3, 0)
			v.redis(w.redis...)
			w.Start(false)
			allow(t, w.redis...)
			return "rediss+cluster://" + user + w.redis[1].addr()
		},
	}
}

func TestRedisOverTLS(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "Sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t)
			url := secured(v)[name](t)
			foreign := newVault(t)
			open := func(t *testing.T, dir, name string) replicas.Engine {
				log := logger()
				return closing(t, member.New(rediskv.Open(rediskv.Options{URL: parse(t, url), TLS: files(dir).Client(name, slog.New(slog.DiscardHandler)), Prefix: "mcpbridge", Name: "test", Logger: log}), member.Options{Logger: slog.New(slog.DiscardHandler)}))
			}
			late := t.TempDir() // files that are replaced
			foreign.clients.Files(late, bridgetest.Leaf{})
			v.write(late, "ca.pem", v.servers.PEM())
			refused := map[string]replicas.Engine{
				"another authority":                  open(t, foreign.own, serverName),
				"another name":                       open(t, v.own, "other.example"),
				"the address, which is not in it":    open(t, v.own, ""),
				"a certificate of another authority": open(t, late, serverName),
			}
			join(t, refused)
			g := newGroup(t, func() replicas.Engine { return open(t, v.own, serverName) })
			g.recover(60*time.Second, g.names())
			refuse(t, refused)
			v.clients.Files(late, bridgetest.Leaf{})
			v.write(late, "ca.pem", v.servers.PEM())
			eventually(t, patience, "a certificate that was replaced is shown", func() bool { return refused["a certificate of another authority"].View().Away.IsZero() })
		})
	}
}
