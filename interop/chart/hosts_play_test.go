//go:build linux

package chart

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// aliceToken is what the client of these tests sends.
const aliceToken = "the-token-of-alice-which-is-long-enough"

// startHost starts a host, which has what README.md says, but for systemd: NATS, mcpbridge and a balancer in one
// network namespace, the first two in a root of their own.
func startHost(t *testing.T, n *network, dir, name, addr, balancer string, others []string) {
	t.Helper()
	namespace := n.join(t, addr)
	digest := sha256.Sum256([]byte(aliceToken))
	l := newLaid(t, &syscall.Credential{Uid: 1000, Gid: 1000})
	for _, line := range variables(t, dir) {
		switch {
		case strings.HasPrefix(line, "HOST="):
			line = "HOST=" + name
		case strings.HasPrefix(line, "ALICE_SHA256="):
			line = "ALICE_SHA256=" + hex.EncodeToString(digest[:])
		}
		l.env = append(l.env, line)
	}
	l.env = append(l.env, "HOME=/var/lib/mcpbridge")
	l.hosts(t, others...)
	for _, d := range []string{"etc/mcpbridge/tls", "etc/nats", "run/nats", "var/lib/mcpbridge"} {
		must(t, os.MkdirAll(filepath.Join(l.root, d), 0o755))
	}
	for _, d := range []string{"run/nats", "var/lib/mcpbridge"} {
		must(t, os.Chown(filepath.Join(l.root, d), 1000, 1000))
	}
	for _, f := range []string{"ca.crt", "tls.crt", "tls.key"} {
		path := filepath.Join(l.root, "etc/mcpbridge/tls", f)
		must(t, os.WriteFile(path, []byte(readFile(t, filepath.Join(dir, f))), 0o640))
		must(t, os.Chown(path, 0, 1000))
	}
	must(t, os.WriteFile(filepath.Join(l.root, "etc/mcpbridge/config.yaml"), []byte(strings.ReplaceAll(readFile(t, hosts+"/mcpbridge.yaml"), "192.0.2.", "10.77.0.")), 0o644))
	must(t, os.WriteFile(filepath.Join(l.root, "etc/nats/nats.conf"), []byte(readFile(t, hosts+"/nats.conf")), 0o644))
	must(t, os.Link(natsServer(t), filepath.Join(l.root, "usr/bin/nats-server")))
	start(t, "nats of "+name, namespace, l.run("/usr/bin/nats-server", "--config", "/etc/nats/nats.conf"))
	start(t, name, namespace, l.command("serve", "/etc/mcpbridge/config.yaml"))
	for range 2 { // as a service manager would
		cmd := balance(t, dir, balancer)
		start(t, balancer+" of "+name, namespace, cmd)
		if n.listens(t, addr+":443") {
			return
		}
		at, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/wchan") // for the log alone
		t.Logf("%s of %s does not listen; it waits in %q, and is started again", balancer, name, at)
		_ = cmd.Process.Kill() // it may have ended
	}
}

// listens waits until somebody listens at an address, for some seconds.
func (n *network) listens(t *testing.T, addr string) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if conn, err := n.dial(t.Context(), "tcp", addr); err == nil {
			_ = conn.Close()
			return true
		}
	}
	return false
}

// balance is a balancer with its configuration and certificates, which asks no DNS.
func balance(t *testing.T, dir, balancer string) *exec.Cmd {
	t.Helper()
	replace := []string{"mcp-a:", played[0] + ":", "mcp-b:", played[1] + ":", "mcp-c:", played[2] + ":"}
	if balancer == "haproxy" {
		return exec.Command("haproxy", "-db", "-f", at(t, dir, "haproxy.cfg", append(replace, "/etc/haproxy", dir, "  user haproxy\n  group haproxy\n", "")...))
	}
	own := t.TempDir()
	config := at(t, dir, "nginx.conf", append(replace, "/etc/nginx/clients.crt", dir+"/tls.crt", "/etc/nginx/clients.key", dir+"/tls.key")...)
	whole := own + "/whole.conf"
	must(t, os.WriteFile(whole, []byte("daemon off;\nuser root;\nmaster_process off;\npid "+own+"/pid;\nevents {}\nhttp {\naccess_log off;\ninclude "+config+";\n}\n"), 0o600))
	return exec.Command("nginx", "-e", "stderr", "-p", own, "-c", whole)
}

// Three hosts with the files as they are: a session works at each balancer, with each
// replica.
func TestHostsArePlayed(t *testing.T) {
	for _, balancer := range []string{"haproxy", "nginx"} {
		t.Run(balancer, func(t *testing.T) {
			if _, err := exec.LookPath(balancer); err != nil {
				t.Skipf("%v", err)
			}
			n, dir := newNetwork(t), prepared(t)
			must(t, os.WriteFile(dir+"/clients.pem", []byte(readFile(t, dir+"/tls.crt")+readFile(t, dir+"/tls.key")), 0o600))
			names := []string{"mcp-a", "mcp-b", "mcp-c"}
			var others []string
			for i, name := range names {
				others = append(others, played[i]+" "+name)
			}
			for i, name := range names {
				startHost(t, n, dir, name, played[i], balancer, others)
			}
			c := &client{url: "https://mcp.example.com/mcp/notebook"}
			c.http.Transport = bearer{&http.Transport{
				DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return n.dial(ctx, network, played[int(c.next.Add(1))%len(played)]+":443")
				},
				TLSClientConfig: &tls.Config{ServerName: "mcpbridge.internal", RootCAs: trusted(t, dir)},
			}}
			for _, addr := range played {
				know(t, n, dir, addr)
			}
			c.until(t)
			c.use(t)
		})
	}
}

// bearer sends alice's token.
type bearer struct{ to http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = "mcp.example.com"
	r.Header.Set("Authorization", "Bearer "+aliceToken)
	return b.to.RoundTrip(r)
}

// trusted is the authority of the hosts.
func trusted(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(readFile(t, dir+"/ca.crt"))) {
		t.Fatal("no authority")
	}
	return pool
}

// know waits until a host knows of all three.
func know(t *testing.T, n *network, dir, addr string) {
	t.Helper()
	_, token, _ := strings.Cut(readFile(t, dir+"/environment"), "ADMIN_TOKEN=")
	token, _, _ = strings.Cut(token, "\n")
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: n.dial, TLSClientConfig: &tls.Config{ServerName: "mcpbridge.internal", RootCAs: trusted(t, dir)},
	}}
	var last string
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+":2527/metrics", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := c.Do(req)
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		must(t, err)
		if last = resp.Status; strings.Contains(string(body), "\nmcpbridge_replicas 3\n") {
			return
		}
	}
	t.Fatalf("%s does not know of three hosts: %s", addr, last)
}
