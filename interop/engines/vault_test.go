package engines

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// serverName is in the certificates of all servers, which are reached by addresses.
const serverName = "engine.example"

// A vault has the authorities of an engine and of its clients.
type vault struct {
	t                *testing.T
	servers, clients *bridgetest.Authority
	dir              string // the servers' files
	own              string // files of a client: of the right authorities, at the beginning
}

func newVault(t *testing.T) *vault {
	v := &vault{t: t, servers: bridgetest.NewAuthority(t, "servers"), clients: bridgetest.NewAuthority(t, "clients"), dir: t.TempDir(), own: t.TempDir()}
	v.servers.Files(v.dir, bridgetest.Leaf{Names: []string{serverName}})
	v.write(v.dir, "clients.pem", v.clients.PEM(), v.servers.PEM())
	v.clients.Files(v.own, bridgetest.Leaf{})
	v.write(v.own, "ca.pem", v.servers.PEM())
	return v
}

func (v *vault) write(dir, name string, parts ...[]byte) {
	v.t.Helper()
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	if err := os.WriteFile(filepath.Join(dir, name), all, 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// files are those of a directory.
func files(dir string) certs.Files {
	return certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}
}

// join has strangers join.
func join(t *testing.T, strangers map[string]replicas.Engine) {
	t.Helper()
	for _, e := range strangers {
		if err := e.Join(t.Context(), replicas.Replica{Instance: "stranger", Addr: "10.0.0.9:2528"}); err != nil {
			t.Fatal(err)
		}
	}
}

// refuse checks that strangers have never reached their engine, some time after join.
func refuse(t *testing.T, strangers map[string]replicas.Engine) {
	t.Helper()
	time.Sleep(3 * replicas.Heartbeat)
	for what, e := range strangers {
		if v := e.View(); v.Away.IsZero() || !v.Heard.IsZero() {
			t.Errorf("%s is not refused: %+v", what, v)
		}
	}
}
