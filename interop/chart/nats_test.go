//go:build linux

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// natsOptions is a configuration as NATS reads it, which refuses what it does not know.
func natsOptions(t *testing.T, text string, env []string) *server.Options {
	t.Helper()
	for _, e := range env {
		name, v, _ := strings.Cut(e, "=")
		t.Setenv(name, v)
	}
	path := filepath.Join(t.TempDir(), "nats.conf")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !o.JetStream || o.StoreDir != "/data" {
		t.Errorf("JetStream is %v in %s", o.JetStream, o.StoreDir)
	}
	return o
}

// NATS takes the configuration of the chart with the environment of its pod: each node
// knows all others, and the password that mcpbridge has.
func TestNATS(t *testing.T) {
	for name, nodes := range map[string]int{"quick": 3, "all": 1} {
		r := newRelease(t, readValues(t, valuesFiles(t)[name]))
		s := all[*appsv1.StatefulSet](r)[0]
		env := environment(t, r, s.Spec.Template.Spec.Containers[0], "10.77.0.21")
		o := natsOptions(t, named[*corev1.ConfigMap](r, s.Name).Data["nats.conf"], env)
		password := string(secret(t, r, r.deployment(t).Name)["nats-password"])
		if o.Username != "peers" || o.Password != password || o.ServerName != "nats-0" {
			t.Errorf("%s: NATS is %s and knows %s with %d bytes", name, o.ServerName, o.Username, len(o.Password))
		}
		if int(*s.Spec.Replicas) != nodes {
			t.Errorf("%s: %d nodes, want %d", name, *s.Spec.Replicas, nodes)
		}
		if nodes == 1 {
			continue
		}
		if len(o.Routes) != nodes || o.Cluster.Port != 6222 || o.Cluster.Password != password {
			t.Errorf("%s: %d routes for %d nodes", name, len(o.Routes), nodes)
		}
		for _, to := range o.Routes {
			if p, _ := to.User.Password(); p != password || to.User.Username() != o.Cluster.Username || !strings.HasSuffix(to.Host, "."+s.Name+":6222") {
				t.Errorf("%s: a route to %s as %s", name, to.Host, to.User.Username())
			}
		}
	}
}

// Passwords are texts, whatever they look like.
func TestComposeNATS(t *testing.T) {
	for _, password := range append(composeSecrets, "12345", "true", "10k") {
		o := natsOptions(t, readFile(t, replicas+"/nats.conf"), []string{"NATS_PASSWORD='" + password + "'"})
		if o.Username != "peers" || o.Password != password {
			t.Errorf("the password of %s is %q, want %q", o.Username, o.Password, password)
		}
	}
	command := strings.Join(compose(t, replicas+"/compose.yaml").Services["nats"].Command, " ")
	if !strings.HasPrefix(command, `NATS_PASSWORD="'$(cat /run/secrets/nats_password)'" `) {
		t.Errorf("NATS is started by %s", command)
	}
}

// The images are of the version that is tried here.
func TestNATSVersion(t *testing.T) {
	tag := load(t).Values["nats"].(map[string]any)["image"].(map[string]any)["tag"].(string)
	image := compose(t, replicas+"/compose.yaml").Services["nats"].Image
	if want := server.VERSION + "-alpine"; tag != want || !strings.HasSuffix(image, ":"+want) {
		t.Errorf("the chart runs NATS %s, compose %s, want %s", tag, image, want)
	}
}
