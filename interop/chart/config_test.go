//go:build linux

package chart

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// The program takes the configuration of each release as it is in the pod, without a
// warning, and as its user.
func TestConfiguration(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		if err := layOut(t, r, "10.77.0.11").check(t); err != nil {
			t.Error(err)
		}
	})
}

// The program takes the configuration of compose as it is in the container.
func TestComposeConfiguration(t *testing.T) {
	if err := contained(t, "a1b2c3").check(t); err != nil {
		t.Error(err)
	}
}

// contained lays a container of the service mcpbridge out, whose user is that of the image.
func contained(t *testing.T, hostname string) *laid {
	t.Helper()
	s := compose(t, replicas+"/compose.yaml").Services["mcpbridge"]
	l := newLaid(t, &syscall.Credential{Uid: 65532, Gid: 65532})
	l.args = []string{"serve", "/etc/mcpbridge/config.yaml"}
	l.env = []string{"HOSTNAME=" + hostname, "HOME=/var/lib/mcpbridge"}
	for _, v := range s.Volumes {
		at := filepath.Join(l.root, v.Target)
		if v.Type != types.VolumeTypeBind {
			must(t, os.MkdirAll(at, 0o755))
			must(t, os.Chown(at, 65532, 65532))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(readFile(t, v.Source)), 0o644))
	}
	for _, secret := range s.Secrets {
		at := filepath.Join(l.root, "run/secrets", secret.Source)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(composeSecret(secret.Source)+"\n"), 0o644))
	}
	return l
}
