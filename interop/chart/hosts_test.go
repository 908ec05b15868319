//go:build linux

package chart

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const hosts = "../../deploy/hosts"

// prepared runs the commands of README.md that make certificates and secrets, and returns
// the folder with them.
func prepared(t *testing.T) string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readFile(t, hosts+"/README.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d blocks of commands, want two", len(blocks))
	}
	cmd := exec.Command("sh", "-e")
	cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(blocks[0][1])
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(linked(t, cmd.Dir))+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return cmd.Dir
}

// linked links the program under its name.
func linked(t *testing.T, dir string) string {
	t.Helper()
	at := filepath.Join(dir, "bin", "mcpbridge")
	must(t, os.Mkdir(filepath.Dir(at), 0o755))
	must(t, os.Symlink(bridge, at))
	return at
}

// variables are the lines of the files of variables, for one host.
func variables(t *testing.T, dir string) (env []string) {
	t.Helper()
	digest := sha256.Sum256([]byte(rand.Text()))
	for line := range strings.Lines(readFile(t, dir+"/environment") + readFile(t, dir+"/hosts.env")) {
		switch line = strings.TrimSpace(line); line {
		case "HOST=":
			line += "mcp-a"
		case "ALICE_SHA256=":
			line += hex.EncodeToString(digest[:])
		}
		env = append(env, line)
	}
	return env
}

// at is a file of deploy/hosts, written to dir with the paths of the prepared files.
func at(t *testing.T, dir, name string, replace ...string) string {
	t.Helper()
	replace = append(replace, "/etc/mcpbridge/tls", dir)
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(readFile(t, hosts+"/"+name))), 0o600))
	return path
}

// mcpbridge takes its configuration, without a warning, with the variables that README.md
// makes; and not without them.
func TestHostsConfiguration(t *testing.T) {
	dir := prepared(t)
	cmd := exec.Command(bridge, "check", at(t, dir, "mcpbridge.yaml"))
	cmd.Env = append(variables(t, dir), "HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("check: %v\n%s", err, out)
	}
	cmd = exec.Command(bridge, "check", filepath.Join(dir, "mcpbridge.yaml"))
	cmd.Env = []string{"HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("check without secrets: %s", out)
	}
}

// NATS takes its configuration: three nodes with TLS, and the password of mcpbridge.
func TestHostsNATS(t *testing.T) {
	dir := prepared(t)
	env := variables(t, dir)
	text := strings.NewReplacer("/etc/mcpbridge/tls", dir, "/run/nats", "/data").Replace(readFile(t, hosts+"/nats.conf"))
	o := natsOptions(t, text, env)
	if o.ServerName != "mcp-a" || o.Username != "peers" || "NATS_PASSWORD="+o.Password != env[len(env)-1] || len(o.Password) != 65 {
		t.Errorf("NATS is %s and knows %s with %d bytes", o.ServerName, o.Username, len(o.Password))
	}
	if len(o.Routes) != 3 || o.TLSConfig == nil || o.Cluster.TLSConfig == nil || o.Cluster.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert {
		t.Errorf("%d routes, TLS by %v", len(o.Routes), o.Cluster.TLSConfig)
	}
}

// The balancers take their configuration; HAProxy is checked with the certificates.
func TestHostsBalancers(t *testing.T) {
	dir := prepared(t)
	pem := readFile(t, dir+"/tls.crt") + readFile(t, dir+"/tls.key")
	must(t, os.WriteFile(dir+"/clients.pem", []byte(pem), 0o600))
	config := at(t, dir, "haproxy.cfg", "/etc/haproxy", dir, "  user haproxy\n  group haproxy\n", "", "mcp-a:", "127.0.0.1:", "mcp-b:", "127.0.0.1:", "mcp-c:", "127.0.0.1:")
	if out, err := exec.Command("haproxy", "-c", "-f", config).CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not there")
	}
	config = at(t, dir, "nginx.conf", "/etc/nginx/clients.crt", dir+"/tls.crt", "/etc/nginx/clients.key", dir+"/tls.key", "mcp-a:", "127.0.0.1:", "mcp-b:", "127.0.0.1:", "mcp-c:", "127.0.0.1:")
	whole := dir + "/whole.conf"
	must(t, os.WriteFile(whole, []byte("pid "+dir+"/pid;\nevents {}\nhttp {\ninclude "+config+";\n}\n"), 0o600))
	if out, err := exec.Command("nginx", "-t", "-e", dir+"/log", "-c", whole).CombinedOutput(); err != nil || strings.Contains(string(out), "[warn]") {
		t.Errorf("nginx -t: %v\n%s", err, out)
	}
}

// systemd takes the unit of NATS, and that of the package with what is added to it.
func TestHostsUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not there")
	}
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/mcpbridge.service.d", 0o755))
	program := strings.NewReplacer("/usr/local/bin/nats-server", bridge, "/usr/bin/mcpbridge", bridge)
	for from, to := range map[string]string{
		hosts + "/nats.service": "nats.service", hosts + "/mcpbridge.conf": "mcpbridge.service.d/hosts.conf", "../../packaging/systemd/mcpbridge.service": "mcpbridge.service",
	} {
		must(t, os.WriteFile(filepath.Join(dir, to), []byte(program.Replace(readFile(t, from))), 0o644))
	}
	cmd := exec.Command("systemd-analyze", "verify", "--man=no", dir+"/nats.service", dir+"/mcpbridge.service")
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) || strings.Contains(line, "nats.service") || strings.Contains(line, "mcpbridge.service") {
			t.Error(line)
		}
	}
	if err != nil {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
