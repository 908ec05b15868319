package config

import (
	"net"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/server"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// replicasKey is the key that has all of it.
const replicasKey = "replicas"

// Replicas says how several processes with this configuration serve the same clients.
type Replicas struct {
	Engine      string        `koanf:"engine" doc:"URL of the NATS or Redis that knows the replicas: nats:// or tls://, redis:// or rediss://, redis+sentinel:// or redis+cluster://; several hosts by comma"`
	Peers       string        `koanf:"peers" secret:"no" doc:"instead of engine: dns:// and the host:port whose addresses are the replicas; several by comma"`
	Keys        []string      `koanf:"keys" doc:"secrets by which replicas know each other: the first signs, all are accepted"`
	Peer        string        `koanf:"peer" secret:"no" doc:"host:port where other replicas connect; by default advertise, if that is on loopback"`
	Advertise   string        `koanf:"advertise" secret:"no" doc:"host:port by which other replicas reach peer; by default peer itself, if it names one address"`
	Heartbeat   time.Duration `koanf:"heartbeat" default:"1s" min:"1s" max:"10s" doc:"with an engine: how often this replica tells it that it lives; after three of them others take over. Above 1s only once all replicas have a version that knows the key"`
	TLS         PeerTLS       `koanf:"tls" doc:"certificates for https between replicas"`
	EngineTLS   server.TLS    `koanf:"engine_tls" doc:"certificates for TLS to the engine"`
	Credentials string        `koanf:"credentials" secret:"no" doc:"file of the credentials for NATS: a JWT and its seed"`
	Prefix      string        `koanf:"prefix" default:"mcpbridge" secret:"no" doc:"what the names of buckets or keys at the engine begin with; one for each deployment"`
}

// A PeerTLS says how replicas prove themselves to each other.
type PeerTLS struct {
	Cert       string `koanf:"cert" secret:"no" doc:"file of the certificate in PEM, and those between it and its authority"`
	Key        string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
	ClientCA   string `koanf:"client_ca" secret:"no" doc:"file of the authorities whose certificates replicas have to show, in both directions"`
	ServerName string `koanf:"server_name" secret:"no" doc:"the name that the certificates are for, where that is not the host that is advertised"`
	Plaintext  bool   `koanf:"plaintext" doc:"accept replicas without TLS, too, and reach those that have none: for the time in which TLS is introduced or removed"`
}

// Files returns the files; zero without TLS.
func (t *PeerTLS) Files() certs.Files {
	return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.ClientCA}
}

// Resolve makes the paths of files ones that can be opened, and sets Peer where Advertise says
// what it is: replicas on one machine need no other.
func (r *Replicas) Resolve(sc *value.Scope, rep *key.Report) {
	if r == nil {
		return
	}
	if host, _, err := net.SplitHostPort(r.Advertise); r.Peer == "" && err == nil && value.Loopback(host) {
		r.Peer = r.Advertise
	}
	sc.Resolve(rep, replicasKey, map[string]*string{"credentials": &r.Credentials})
	sc.Resolve(rep, key.Join(replicasKey, "tls"), map[string]*string{"cert": &r.TLS.Cert, "key": &r.TLS.Key, "client_ca": &r.TLS.ClientCA})
	r.EngineTLS.Resolve(sc, rep, key.Join(replicasKey, "engine_tls"))
}

// Secrets returns the keys, and the passwords and tokens in the URLs of the engine.
func (r *Replicas) Secrets() []string {
	if r == nil {
		return nil
	}
	return append(slices.Clone(r.Keys), replicas.URLSecrets(r.Engine)...)
}
