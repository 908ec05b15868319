//go:build linux

package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// A log is what a process has written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// start runs a process in a namespace until the end of the test.
func start(t *testing.T, name string, namespace int, cmd *exec.Cmd) {
	t.Helper()
	var out log
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, within(namespace, cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // errors if it has ended
		err := cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %v\n%s", name, err, out.text.String())
		}
	})
}

// hosts writes names and addresses for a root, as kubelet and Docker do.
func (l *laid) hosts(t *testing.T, lines ...string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(l.root, "etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(l.root, "etc/hosts"), []byte("127.0.0.1 localhost\n"+strings.Join(lines, "\n")+"\n"), 0o644))
}

// startNATS starts a node of NATS with its configuration, in a root of its own.
func startNATS(t *testing.T, n *network, addr, config string, env, hosts []string) {
	t.Helper()
	l := newLaid(t, &syscall.Credential{Uid: 1000, Gid: 1000})
	l.hosts(t, hosts...)
	must(t, os.Mkdir(filepath.Join(l.root, "data"), 0o777))
	must(t, os.Chmod(filepath.Join(l.root, "data"), 0o777))
	must(t, os.Link(natsServer(t), filepath.Join(l.root, "usr/bin/nats-server")))
	must(t, os.WriteFile(filepath.Join(l.root, "etc/nats.conf"), []byte(config), 0o644))
	cmd := l.run("/usr/bin/nats-server", "--config", "/etc/nats.conf")
	cmd.Dir, cmd.Env = "/", env
	start(t, "nats at "+addr, n.join(t, addr), cmd)
}

// natsServer builds NATS, of the version that the images have.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(bridge), "nats-server")
	cmd := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func natsServer(t *testing.T) string {
	t.Helper()
	path, err := built()
	must(t, err)
	return path
}

// played are the addresses of the pods of a test.
var played = []string{"10.77.0.11", "10.77.0.12", "10.77.0.13"}

// A playing is a release whose pods run on this machine, each in a network namespace and a
// root of its own, with the files, the user and the environment that its pod has.
type playing struct {
	*network
	*release
	addrs  []string
	hosts  []string // lines of /etc/hosts
	pods   []*laid
	inside []int // the namespaces of pods
}

func play(t *testing.T, values map[string]any) *playing {
	t.Helper()
	p := &playing{network: newNetwork(t), release: newRelease(t, values)}
	d := p.deployment(t)
	p.addrs = played[:*d.Spec.Replicas]
	hosts := []string{played[0] + " " + d.Name}
	for _, addr := range p.addrs {
		hosts = append(hosts, addr+" "+d.Name+"-headless")
	}
	if len(all[*appsv1.StatefulSet](p.release)) > 0 {
		hosts = append(hosts, playNATS(t, p.network, p.release)...)
	}
	if engine, _ := values["engine"].(map[string]any); engine["kind"] == "url" {
		hosts = append(hosts, playRedis(t, p.network))
	}
	for _, addr := range p.addrs {
		p.run(t, p.release, addr, hosts)
	}
	p.know(t, len(p.addrs))
	return p
}

// run starts a pod.
func (p *playing) run(t *testing.T, r *release, addr string, hosts []string) {
	t.Helper()
	l, namespace := layOut(t, r, addr), p.join(t, addr)
	l.hosts(t, hosts...)
	p.hosts, p.pods, p.inside = hosts, append(p.pods, l), append(p.inside, namespace)
	start(t, "mcpbridge at "+addr, namespace, l.command(l.args...))
}

// know waits until the pods know of so many replicas.
func (p *playing) know(t *testing.T, n int) {
	t.Helper()
	for _, addr := range p.addrs {
		p.ready(t, addr+":2527", "/readyz")
		if n > 1 {
			p.metric(t, addr, p.token(t), fmt.Sprintf("mcpbridge_replicas %d", n))
		}
	}
}

// token is the one of Prometheus.
func (p *playing) token(t *testing.T) string {
	t.Helper()
	for _, v := range p.deployment(t).Spec.Template.Spec.Volumes {
		if v.Name == "secret" {
			return string(secret(t, p.release, v.Secret.SecretName)["metrics-token"])
		}
	}
	return ""
}

// upgrade gives the pods what values make of the ConfigMap, one after the other, as
// kubelets do in their own time. between is called after each.
func (p *playing) upgrade(t *testing.T, values string, reloads int, between func()) {
	t.Helper()
	next := newRelease(t, valuesOf(t, values))
	text := named[*corev1.ConfigMap](next, next.deployment(t).Name).Data["config.yaml"]
	for i, l := range p.pods {
		project(t, filepath.Join(l.root, "etc/mcpbridge"), map[string][]byte{"config.yaml": []byte(text)}, 0o440, int(l.user.Gid))
		p.metric(t, p.addrs[i], p.token(t), fmt.Sprintf(`mcpbridge_config_reloads_total{result="ok"} %d`, reloads))
		between()
	}
}

// client is one of the Service, which sends each connection to another pod.
func (p *playing) client(path string) *client {
	return newClient(p.network, path, p.addrs...)
}

// The chart as it is rendered: a session works at each of the replicas, whatever tells them
// of each other.
func TestChartIsPlayed(t *testing.T) {
	for name, text := range map[string]string{
		"nats":               `{config: {allow_anonymous: true}}`,
		"dns":                `{config: {allow_anonymous: true}, engine: {kind: dns}}`,
		"dns, with TLS":      `{config: {allow_anonymous: true}, engine: {kind: dns}, peer: {tlsSecret: peer-tls, serverName: peers.example.com}}`,
		"dns, generated TLS": `{config: {allow_anonymous: true}, engine: {kind: dns}, tls: {generate: true, for: [peers]}}`,
		"redis":              `{config: {allow_anonymous: true}, engine: {kind: url, url: "redis://peers:${REDIS_PASSWORD}@redis:6379"}, envFrom: [{secretRef: {name: redis-password}}]}`,
		"one node, with TLS": `{config: {allow_anonymous: true}, nats: {replicas: 1}, peer: {tlsSecret: mcpbridge-peer-tls}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, valuesOf(t, text))
			p.client("/mcp/notebook").use(t)
		})
	}
}

// helm test finds what it asks for, by the name of the Service; and a changed ConfigMap
// counts without a restart.
func TestChartIsUsed(t *testing.T) {
	p := play(t, valuesOf(t, `{config: {allow_anonymous: true}, replicaCount: 1, engine: {kind: none}}`))
	for _, probe := range all[*corev1.Pod](p.release) {
		for _, c := range probe.Spec.Containers {
			cmd := p.pods[0].command(c.Args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			must(t, within(p.inside[0], cmd.Start))
			if err := cmd.Wait(); err != nil {
				t.Errorf("%q = %v\n%s", c.Args, err, out.String())
			}
		}
	}
	p.upgrade(t, `{config: {allow_anonymous: true, servers: {second: {builtin: notebook}}}, replicaCount: 1, engine: {kind: none}}`, 1, func() {})
	p.client("/mcp/second").use(t)
}

// The key of the replicas is replaced in the three steps of docs/replicas.md, while they
// differ and a session goes on.
func TestKeysAreReplaced(t *testing.T) {
	const values = `{config: {allow_anonymous: true}, nats: {replicas: 1}, existingSecret: all-keys, peer: {keys: %s}}`
	p := play(t, valuesOf(t, fmt.Sprintf(values, "[peer-key]")))
	c := p.client("/mcp/notebook")
	session, i := c.open(t), 0
	for step, keys := range []string{"[peer-key, peer-key-2]", "[peer-key-2, peer-key]", "[peer-key-2]"} {
		p.upgrade(t, fmt.Sprintf(values, keys), step+1, func() {
			for range 3 {
				c.edit(t, session, i)
				i++
			}
		})
	}
	p.run(t, newRelease(t, valuesOf(t, fmt.Sprintf(values, "[peer-key-2]"))), "10.77.0.14", p.hosts)
	p.know(t, 4)
	newClient(p.network, "/mcp/notebook", "10.77.0.14").edit(t, session, i) // whose only key is the new one
}

// playNATS starts the nodes of a release, and returns the lines of /etc/hosts for them. It
// does not wait for them: nobody does in a cluster.
func playNATS(t *testing.T, n *network, r *release) (hosts []string) {
	t.Helper()
	s := all[*appsv1.StatefulSet](r)[0]
	addrs := []string{"10.77.0.21", "10.77.0.22", "10.77.0.23"}[:*s.Spec.Replicas]
	for i, addr := range addrs {
		hosts = append(hosts, fmt.Sprintf("%s %s %s-%d.%s", addr, s.Name, s.Name, i, s.Name))
	}
	for i, addr := range addrs {
		env := append(environment(t, r, s.Spec.Template.Spec.Containers[0], addr), fmt.Sprintf("POD_NAME=%s-%d", s.Name, i))
		startNATS(t, n, addr, named[*corev1.ConfigMap](r, s.Name).Data["nats.conf"], env, hosts)
	}
	return hosts
}

// playRedis starts a Redis that has but the user of docs/replicas.md, with the password that
// the values have.
func playRedis(t *testing.T, n *network) (host string) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatalf("%v: interop/redis installs it", err)
	}
	password := string(given(t)["redis-password"]["REDIS_PASSWORD"])
	_, acl, _ := strings.Cut(readFile(t, "../../docs/replicas.md"), "`user peers ")
	acl, _, found := strings.Cut(acl, "`")
	if !found {
		t.Fatal("docs/replicas.md has no user of Redis")
	}
	config := filepath.Join(t.TempDir(), "redis.conf")
	write := "bind 0.0.0.0\nsave \"\"\nuser default off\nuser peers " + strings.Replace(acl, "PASSWORD", password, 1) + "\n"
	must(t, os.WriteFile(config, []byte(write), 0o600))
	start(t, "redis", n.join(t, "10.77.0.31"), exec.Command("redis-server", config, "--dir", t.TempDir()))
	return "10.77.0.31 redis"
}

// The compose file: three replicas and NATS, each in a namespace of its own, and HAProxy,
// which finds them by a DNS as Docker has it.
func TestComposeIsPlayed(t *testing.T) {
	n := newNetwork(t)
	names := []string{"c0ffee01", "c0ffee02", "c0ffee03"}
	hosts := []string{"10.77.0.21 nats"}
	for i, addr := range played {
		hosts = append(hosts, addr+" "+names[i])
	}
	startNATS(t, n, "10.77.0.21", readFile(t, replicas+"/nats.conf"), []string{"NATS_PASSWORD='" + composeSecret("nats_password") + "'"}, hosts)
	for i, addr := range played {
		l := contained(t, names[i])
		l.hosts(t, hosts...)
		start(t, names[i], n.join(t, addr), l.command(l.args...))
	}
	balancer := n.join(t, "10.77.0.2")
	resolve(t, balancer, "127.0.0.11:53", played...)
	start(t, "haproxy", balancer, exec.Command("haproxy", "-db", "-f", replicas+"/haproxy.cfg"))
	for _, addr := range played {
		n.ready(t, addr+":2527", "/readyz")
		n.metric(t, addr, composeSecret("admin_token"), "mcpbridge_replicas 3")
	}
	newClient(n, "/mcp/notebook", "10.77.0.2").until(t)
	newClient(n, "/mcp/notebook", "10.77.0.2").use(t)
}
