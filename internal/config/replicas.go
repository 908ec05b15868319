package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// Replicas says how several processes with this configuration serve the same clients.
type Replicas struct {
	Engine      string     `koanf:"engine" doc:"URL of the NATS or Redis that knows the replicas: nats://, tls://, redis:// or rediss://; several hosts of one NATS cluster by comma"`
	Peers       string     `koanf:"peers" secret:"no" doc:"instead of engine: dns:// and the host:port whose addresses are the replicas; several by comma"`
	Keys        []string   `koanf:"keys" doc:"secrets by which replicas know each other: the first signs, all are accepted"`
	Peer        string     `koanf:"peer" default:"0.0.0.0:2528" secret:"no" doc:"host:port where other replicas connect"`
	Advertise   string     `koanf:"advertise" secret:"no" doc:"host:port by which other replicas reach peer; by default peer itself, if it names one address"`
	TLS         ReplicaTLS `koanf:"tls" doc:"certificates for https between replicas"`
	EngineTLS   EngineTLS  `koanf:"engine_tls" doc:"certificates for TLS to the engine"`
	Credentials string     `koanf:"credentials" secret:"no" doc:"file of the credentials for NATS: a JWT and its seed"`
	Prefix      string     `koanf:"prefix" default:"mcpbridge" secret:"no" doc:"what the names of buckets or keys at the engine begin with; one for each deployment"`
}

// ReplicaTLS says how replicas prove themselves to each other.
type ReplicaTLS struct {
	Cert       string `koanf:"cert" secret:"no" doc:"file of the certificate in PEM, and those between it and its authority"`
	Key        string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
	ClientCA   string `koanf:"client_ca" secret:"no" doc:"file of the authorities whose certificates replicas have to show, in both directions"`
	ServerName string `koanf:"server_name" secret:"no" doc:"the name that the certificates are for, where that is not the host that is advertised"`
}

// Files returns the files; zero without TLS.
func (t *ReplicaTLS) Files() certs.Files {
	return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.ClientCA}
}

// EngineTLS says how the engine is known, and how it knows us.
type EngineTLS struct {
	CA   string `koanf:"ca" secret:"no" doc:"file of the authorities that its certificate may be of, instead of those that the system trusts"`
	Cert string `koanf:"cert" secret:"no" doc:"file of the certificate to show it, in PEM"`
	Key  string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
}

// Files returns the files; zero if there are none.
func (t *EngineTLS) Files() certs.Files { return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.CA} }

func (r *Replicas) secrets() []string {
	if r == nil {
		return nil
	}
	out := slices.Clone(r.Keys)
	for _, text := range engineURLs(r.Engine) {
		u, err := url.Parse(text)
		if err != nil || u.User == nil {
			continue
		}
		password, has := u.User.Password()
		if !has {
			password = u.User.Username() // a token: the name of a user is no secret
		}
		out = append(out, password)
	}
	return out
}

// engineURLs returns the URL of each host of an engine: those after the first may leave out
// the scheme.
func engineURLs(text string) []string {
	scheme, _, _ := strings.Cut(text, "://")
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); !strings.Contains(part, "://") {
			part = scheme + "://" + part
		}
		out = append(out, part)
	}
	return out
}

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// A replicaChecker checks what is said of replicas.
type replicaChecker struct{ *checker }

// replicas checks the replicas block. Its errors contain neither a key nor the engine's URL.
func (c replicaChecker) replicas(cfg *Config) {
	r := cfg.Replicas
	if r == nil {
		return
	}
	switch {
	case r.Engine == "" && r.Peers == "":
		c.rep.Fail("replicas", "want engine or peers below it; write engine: nats://nats:4222, or peers: dns://mcpbridge-headless:2528")
	case r.Engine != "" && r.Peers != "":
		c.rep.Fail("replicas", "engine and peers are both set; remove one of them: an engine knows the peers")
	case r.Engine != "":
		c.engine(r)
	default:
		c.peers(r)
	}
	if len(r.Keys) == 0 {
		c.rep.Fail(keypath.Join("replicas", "keys"), "is missing: replicas would believe anybody; write a list of random secrets, as openssl rand -base64 32 prints one, the same for all replicas")
	}
	c.keyList(keypath.Join("replicas", "keys"), r.Keys)
	c.peer(r, cfg)
	if !prefixForm.MatchString(r.Prefix) {
		c.rep.Fail(keypath.Join("replicas", "prefix"), "%q can't begin the name of a bucket; use letters, digits, - and _, at most 64", r.Prefix)
	}
	c.replicaTLS(r)
}

func (c replicaChecker) engine(r *Replicas) {
	path := keypath.Join("replicas", "engine")
	first, _, _ := strings.Cut(r.Engine, "://")
	all := engineURLs(r.Engine)
	for _, text := range all {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Hostname() == "" || u.Scheme != first:
			c.rep.Fail(path, "is not the URL of an engine; write nats://host:4222 or redis://host:6379, with user:password@ before the host if it wants them")
			return
		case !slices.Contains([]string{"nats", "tls", "redis", "rediss"}, u.Scheme):
			c.rep.Fail(path, "%s:// is no engine; write nats:// or tls:// for NATS, redis:// or rediss:// for Redis", u.Scheme)
			return
		}
	}
	redis := strings.HasPrefix(first, "redis")
	switch {
	case redis && len(all) > 1:
		c.rep.Fail(path, "names several hosts, which only NATS has; write one, such as that of a service in front of Redis")
	case redis && r.Credentials != "":
		c.rep.Fail(keypath.Join("replicas", "credentials"), "is for NATS alone; write the user and password of Redis into engine: rediss://user:password@host:6379")
	case first == "redis" && r.EngineTLS != EngineTLS{}:
		c.rep.Fail(keypath.Join("replicas", "engine_tls"), "has no effect, since engine is without TLS; write rediss://, or remove it")
	}
}

func (c replicaChecker) peers(r *Replicas) {
	names, ok := strings.CutPrefix(r.Peers, "dns://")
	for name := range strings.SplitSeq(names, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(name))
		ok = ok && err == nil && host != "" && isPort(port)
	}
	if !ok {
		c.rep.Fail(keypath.Join("replicas", "peers"), "%q is not dns:// and the host and port of the replicas; write dns://mcpbridge-headless:2528", r.Peers)
	}
	for key, set := range map[string]bool{"engine_tls": r.EngineTLS != EngineTLS{}, "credentials": r.Credentials != ""} {
		if set {
			c.rep.Fail(keypath.Join("replicas", key), "is for an engine, and there is none; remove it")
		}
	}
}

// peer checks the addresses of the peer listener.
func (c replicaChecker) peer(r *Replicas, cfg *Config) {
	host, port, err := net.SplitHostPort(r.Peer)
	switch {
	case err != nil || !isPort(port):
		c.rep.Fail(keypath.Join("replicas", "peer"), "%q is not an address; write host:port, as in 0.0.0.0:2528", r.Peer)
		return
	case (r.Peer == cfg.Listen || r.Peer == cfg.Admin) && port != "0":
		c.rep.Fail(keypath.Join("replicas", "peer"), "is the same address as listen or admin; choose another port, such as 2528")
	}
	ip, _ := netip.ParseAddr(host)
	to, port, err := net.SplitHostPort(r.Advertise)
	switch {
	case r.Advertise == "" && (host == "" || ip.IsUnspecified()):
		c.rep.Fail(keypath.Join("replicas", "advertise"), "is missing: peer names no single address; write how other replicas reach this one, as in ${POD_IP}:2528")
	case r.Advertise != "" && (err != nil || to == "" || !isPort(port) || port == "0"):
		c.rep.Fail(keypath.Join("replicas", "advertise"), "%q is not an address; write host:port, as in 10.0.0.7:2528 or [fd00::7]:2528", r.Advertise)
	}
}

func (c replicaChecker) replicaTLS(r *Replicas) {
	t, path := &r.TLS, keypath.Join("replicas", "tls")
	switch {
	case *t == ReplicaTLS{}:
	case t.Cert == "":
		c.rep.Fail(keypath.Join(path, "cert"), "is missing: each replica is a server to the others; name the file of its certificate, and that of its key")
	case t.ClientCA == "":
		c.rep.Fail(keypath.Join(path, "client_ca"), "is missing: nothing says whose certificates replicas have; name the file of their authority")
	case t.ServerName != "" && !serverNameForm.MatchString(t.ServerName):
		c.rep.Fail(keypath.Join(path, "server_name"), "%q is not a host name; write one such as mcpbridge.internal.example, without a port", t.ServerName)
	default:
		c.files(path, t.Files())
	}
	c.files(keypath.Join("replicas", "engine_tls"), r.EngineTLS.Files())
}

// keyList checks secrets that keys are made of. Its errors never contain one.
func (c *checker) keyList(path string, keys []string) {
	for i, k := range keys {
		if len(k) < minStateKey {
			c.rep.Fail(keypath.Join(path, strconv.Itoa(i)), "is shorter than %d characters; write a random secret, as openssl rand -base64 32 prints one", minStateKey)
		}
	}
}

// replicaPaths makes the paths of files ones that can be opened.
func (sc *scope) replicaPaths(r *Replicas, rep *problem.Report) {
	if r == nil {
		return
	}
	for key, file := range map[string]*string{
		"tls.cert": &r.TLS.Cert, "tls.key": &r.TLS.Key, "tls.client_ca": &r.TLS.ClientCA,
		"engine_tls.ca": &r.EngineTLS.CA, "engine_tls.cert": &r.EngineTLS.Cert, "engine_tls.key": &r.EngineTLS.Key,
		"credentials": &r.Credentials,
	} {
		path := "replicas"
		for name := range strings.SplitSeq(key, ".") {
			path = keypath.Join(path, name)
		}
		*file = sc.of(rep, path).path(*file)
	}
}
