//go:build linux

package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

const replicas = "../../deploy/replicas"

// compose is a compose file as docker compose reads it, which refuses keys that it does
// not know.
func compose(t *testing.T, path string) *types.Project {
	t.Helper()
	at, err := filepath.Abs(path)
	must(t, err)
	text, err := os.ReadFile(at)
	must(t, err)
	var duplicates any
	if err := yaml.UnmarshalStrict(text, &duplicates); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: filepath.Dir(at), ConfigFiles: []types.ConfigFile{{Filename: at}}})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return p
}

// What compose mounts is there, and what it runs may do no more than it has to.
func TestCompose(t *testing.T) {
	for _, path := range []string{"../../deploy/compose.yaml", replicas + "/compose.yaml"} {
		for name, s := range compose(t, path).Services {
			for _, v := range s.Volumes {
				if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
					t.Errorf("%s of %s: %v", name, path, err)
				}
			}
			for _, port := range s.Ports {
				if port.HostIP != "127.0.0.1" {
					t.Errorf("%s of %s publishes %s to everybody", name, path, port.Published)
				}
			}
			if path == replicas+"/compose.yaml" && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.Privileged) {
				t.Errorf("%s of %s is not restricted", name, path)
			}
		}
	}
}

// Only the balancer can be reached, NATS by the replicas alone; and a replica that is
// stopped has the time it takes.
func TestComposeReplicas(t *testing.T) {
	p := compose(t, replicas+"/compose.yaml")
	balancer, bridge, nats := p.Services["balancer"], p.Services["mcpbridge"], p.Services["nats"]
	if len(bridge.Ports)+len(nats.Ports) > 0 || len(balancer.Ports) != 1 {
		t.Error("something else than the balancer is published")
	}
	if !p.Networks["inner"].Internal || len(nats.Networks) != 1 || nats.Networks["inner"] != nil || len(balancer.Networks) != 1 {
		t.Errorf("NATS is in %v, the balancer in %v", nats.Networks, balancer.Networks)
	}
	if n := bridge.GetScale(); n != 3 {
		t.Errorf("%d replicas, want 3", n)
	}
	var config map[string]any
	must(t, yaml.UnmarshalStrict([]byte(readFile(t, replicas+"/mcpbridge.yaml")), &config))
	grace := time.Duration(*bridge.StopGracePeriod)
	if delay := duration(t, config["drain_delay"]); grace < delay+10*time.Second+10*time.Second { // the default of drain, and some
		t.Errorf("a replica has %v to stop", grace)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// HAProxy takes its configuration, asks for readiness where it is told, and has room for
// all replicas.
func TestBalancer(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Fatalf("%v: deploy/check installs it", err)
	}
	if out, err := exec.Command("haproxy", "-c", "-f", replicas+"/haproxy.cfg").CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c: %v\n%s", err, out)
	}
	text := readFile(t, replicas+"/haproxy.cfg")
	m := regexp.MustCompile(`check port (\d+) inter (\d)s fall (\d)[^$]*server-template \S+ 1-(\d+) mcpbridge:(\d+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no servers in\n%s", text)
	}
	n := make([]int, len(m))
	for i := range m[1:] {
		n[i+1], _ = strconv.Atoi(m[i+1]) // errors: digits alone
	}
	var config struct {
		Listen, Admin string
		DrainDelay    string `json:"drain_delay"`
	}
	must(t, yaml.Unmarshal([]byte(readFile(t, replicas+"/mcpbridge.yaml")), &config))
	if config.Admin != "0.0.0.0:"+m[1] || config.Listen != "0.0.0.0:"+m[5] {
		t.Errorf("HAProxy asks at %s, and sends to %s", m[1], m[5])
	}
	if seen := time.Duration(n[2]*n[3]) * time.Second; seen >= duration(t, config.DrainDelay) {
		t.Errorf("it takes %v until HAProxy knows, and drain_delay is %s", seen, config.DrainDelay)
	}
	s := compose(t, replicas+"/compose.yaml").Services["mcpbridge"]
	if scale := s.GetScale(); n[4] < scale {
		t.Errorf("HAProxy has places for %d replicas of %d", n[4], scale)
	}
}

// composeSecrets are as openssl rand -hex 32 makes them; the first could be a number.
var composeSecrets = []string{
	"1e50000000000000000000000000000000000000000000000000000000000001",
	"2222222222222222222222222222222222222222222222222222222222222222",
	"12e5d4f1a8c9b7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2",
}

func composeSecret(name string) string {
	return composeSecrets[slices.Index([]string{"nats_password", "admin_token", "peer_key"}, name)]
}
