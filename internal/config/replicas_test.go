package config

import (
	"slices"
	"strings"
	"testing"
)

const oneEngine = "replicas: {engine: 'nats://u:s3cret@nats:4222', keys: [0123456789abcdef], peer: '0.0.0.0:2528', advertise: '10.0.0.7:2528'}\n"

func TestReplicas(t *testing.T) {
	for _, tt := range []struct{ name, in string }{
		{"NATS", oneEngine},
		{"a cluster of NATS", "replicas: {engine: 'nats://u:s3cret@a:4222,b:4222,nats://c', keys: [0123456789abcdef], peer: ':2528', advertise: '[fd00::7]:2528'}\n"},
		{"Redis with TLS", "replicas: {engine: 'rediss://:s3cret@redis:6379/3', keys: [0123456789abcdef], peer: '10.0.0.7:2528', engine_tls: {ca: ca.pem}}\n"},
		{"Sentinels", "replicas: {engine: 'rediss+sentinel://u:s3cret@a:1,b/2?master_name=m&sentinel_password=t0p', keys: [0123456789abcdef], peer: '10.0.0.7:2528', engine_tls: {server_name: redis.example}}\n"},
		{"a cluster of Redis", "replicas: {engine: 'redis+cluster://u:s3cret@a,b:7', keys: [0123456789abcdef], peer: '10.0.0.7:2528'}\n"},
		{"names", "replicas: {peers: 'dns://mcpbridge-headless:2528,vm1:2528', keys: [0123456789abcdef, fedcba9876543210], peer: '0.0.0.0:2528', advertise: 'host-1:2528'}\n"},
		{"TLS", "replicas: {peers: 'dns://r:1', keys: [0123456789abcdef], peer: '10.0.0.7:2528', tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem, server_name: replicas.example}}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.in+notebook)
			writeCertificates(t)
			if _, _, err := Load(Options{Path: path}); err != nil {
				t.Errorf("Load(%q) = %v", tt.in, err)
			}
		})
	}
}

// onlyHere is what is said of a replica that others can reach, and not find.
const onlyHere = "c.yaml:1: replicas.advertise: is an address of this machine alone, and peer can be reached from others, where no replica would find it; write the address by which they reach this one, as in ${POD_IP}:2528, or remove peer if all replicas are on this machine"

func TestReplicaMistakes(t *testing.T) {
	block := func(s string) string {
		return "replicas: {keys: [0123456789abcdef], peer: '10.0.0.7:2528', " + s + "}\n" + notebook
	}
	at := func(s string) string {
		return "replicas: {engine: 'nats://n', keys: [0123456789abcdef]" + s + "}\n" + notebook
	}
	for _, tt := range []struct{ name, in, want string }{
		{"neither", block(""), "c.yaml:1: replicas: want engine or peers below it; write engine: nats://nats:4222, or peers: dns://mcpbridge-headless:2528"},
		{"both", block("engine: 'nats://n', peers: 'dns://r:1'"), "c.yaml:1: replicas: engine and peers are both set; remove one of them: an engine knows the peers"},
		{"another engine", block("engine: 'etcd://u:s3cret@e'"), "c.yaml:1: replicas.engine: etcd:// is no engine; write nats:// or tls:// for NATS, redis:// or rediss:// for Redis, and redis+sentinel:// or redis+cluster:// for several of it"},
		{"no host", block("engine: 'nats://u:s3cret@'"), "c.yaml:1: replicas.engine: is not the URL of an engine; write nats://host:4222 or redis://host:6379, with user:password@ before the host if it wants them, and in them %2F, %3F, %40 and %2C for / ? @ and ,"},
		{"several Redis", block("engine: 'redis://a:1,b:1'"), "c.yaml:1: replicas.engine: names several hosts of Redis; write redis+sentinel://host:26379,host:26379?master_name=mymaster for Sentinels, redis+cluster:// for a cluster, or one host"},
		{"Sentinels without a name", block("engine: 'redis+sentinel://:s3cret@a:1,b:1'"), "c.yaml:1: replicas.engine: has no master_name; write redis+sentinel://host:26379?master_name=mymaster, as the Sentinels call it"},
		{"a name with a port", block("engine: 'rediss://a:1', engine_tls: {server_name: 'a:1'}"), `c.yaml:1: replicas.engine_tls.server_name: "a:1" is not a host name; write one such as mcp.internal.example, without a port`},
		{"credentials of Redis", block("engine: 'redis://a:1', credentials: x.creds"), "c.yaml:1: replicas.credentials: is for NATS alone; write the user and password of Redis into engine: rediss://user:password@host:6379"},
		{"TLS of Redis without", block("engine: 'redis://a:1', engine_tls: {ca: ca.pem}"), "c.yaml:1: replicas.engine_tls: has no effect, since engine is without TLS; write rediss://, or remove it"},
		{"not dns", block("peers: 'a:1,b:1'"), `c.yaml:1: replicas.peers: "a:1,b:1" is not dns:// and the host and port of the replicas; write dns://mcpbridge-headless:2528`},
		{"peers without a port", block("peers: 'dns://headless'"), `c.yaml:1: replicas.peers: "dns://headless" is not dns:// and the host and port of the replicas; write dns://mcpbridge-headless:2528`},
		{"a heartbeat too fast", block("engine: 'nats://n:1', heartbeat: 500ms"), "c.yaml:1: replicas.heartbeat: \"500ms\" is too small; write at least 1s"},
		{"a heartbeat without an engine", block("peers: 'dns://r:1', heartbeat: 2s"), "c.yaml:1: replicas.heartbeat: is for an engine, and there is none; remove it"},
		{"credentials without an engine", block("peers: 'dns://r:1', credentials: x.creds"), "c.yaml:1: replicas.credentials: is for an engine, and there is none; remove it"},
		{"no keys", "replicas: {engine: 'nats://n', peer: '10.0.0.7:2528'}\n" + notebook, "c.yaml:1: replicas.keys: is missing: replicas would believe anybody; write a list of random secrets, as openssl rand -base64 32 prints one, the same for all replicas"},
		{"a short key", "replicas: {engine: 'nats://n', peer: '10.0.0.7:2528', keys: [s3cret]}\n" + notebook, "c.yaml:1: replicas.keys.0: is shorter than 16 characters; write a random secret, as openssl rand -base64 32 prints one"},
		{"no address", at(", peer: localhost"), `c.yaml:1: replicas.peer: "localhost" is not an address; write host:port, as in 0.0.0.0:2528`},
		{"the address of clients", at(", peer: '127.0.0.1:2526'"), "c.yaml:1: replicas.peer: is the same address as listen or admin; choose another port, such as 2528"},
		{"no peer", at(""), "c.yaml:1: replicas.peer: is missing: nothing says where other replicas connect; write the address by which they reach this one, as in ${POD_IP}:2528, or 0.0.0.0:2528 and that one as advertise"},
		{"no peer, though advertised", at(", advertise: '10.0.0.7:2528'"), "c.yaml:1: replicas.peer: is missing: nothing says where other replicas connect; write the address by which they reach this one, as in ${POD_IP}:2528, or 0.0.0.0:2528 and that one as advertise"},
		{"nothing to advertise", at(", peer: '0.0.0.0:2528'"), "c.yaml:1: replicas.advertise: is missing: peer names no single address; write how other replicas reach this one, as in ${POD_IP}:2528"},
		{"advertised without a port", at(", peer: ':2528', advertise: 10.0.0.7"), `c.yaml:1: replicas.advertise: "10.0.0.7" is not an address; write host:port, as in 10.0.0.7:2528 or [fd00::7]:2528`},
		{"loopback advertised, all addresses open", at(", peer: '0.0.0.0:2528', advertise: '127.0.0.1:2528'"), onlyHere},
		{"loopback advertised by name, one address open", at(", peer: '10.0.0.7:2528', advertise: 'localhost:2528'"), onlyHere},
		{"loopback advertised, of IPv6", at(", peer: '[::]:2528', advertise: '[::1]:2528'"), onlyHere},
		{"a prefix with dots", block("engine: 'nats://n', prefix: a.b"), `c.yaml:1: replicas.prefix: "a.b" can't begin the name of a bucket; use letters, digits, - and _, at most 64`},
		{"a long prefix", block("engine: 'nats://n', prefix: " + strings.Repeat("a", 65)), `c.yaml:1: replicas.prefix: "` + strings.Repeat("a", 65) + `" can't begin the name of a bucket; use letters, digits, - and _, at most 64`},
		{"authorities alone", block("engine: 'nats://n', tls: {client_ca: ca.pem}"), "c.yaml:1: replicas.tls.cert: is missing: each replica is a server to the others; name the file of its certificate, and that of its key"},
		{"no authorities", block("engine: 'nats://n', tls: {cert: cert.pem, key: key.pem}"), "c.yaml:1: replicas.tls.client_ca: is missing: nothing says whose certificates replicas have; name the file of their authority"},
		{"where calls are served", "servers: {a: {builtin: notebook, replicas: two}}", `c.yaml:1: servers.a.replicas: "two" is unknown; write any or one`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.in)
			writeCertificates(t)
			_, _, err := Load(Options{Path: path})
			if err == nil || err.Error() != tt.want {
				t.Errorf("Load(%q) =\n%v\nwant\n%s", tt.in, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Error("the error has a secret")
			}
		})
	}
}

func TestReplicaSecrets(t *testing.T) {
	c, _, err := Load(Options{Path: write(t, "replicas: {engine: 'nats://user-a:first-secret@a:4222,third-secret@b:4222,v:second-secret@c:4222', keys: [0123456789abcdef], peer: 'a:1'}\n"+notebook)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first-secret", "second-secret", "third-secret", "0123456789abcdef"} {
		if !slices.Contains(c.Secrets(), want) {
			t.Errorf("%q is not among the secrets", want)
		}
	}
	if slices.Contains(c.Secrets(), "user-a") {
		t.Error("the name of a user is hidden in logs, wherever it stands")
	}
}

func TestCommandsAreAtOneReplica(t *testing.T) {
	c, _, err := Load(Options{Path: write(t, "servers:\n  a: {command: x}\n  b: {url: 'https://h'}\n  c: {command: x, replicas: any}\n")})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"one", "any", "any"} {
		if got := c.Servers[i].Replicas; got != want {
			t.Errorf("replicas of %s is %q, want %q", c.Servers[i].Name, got, want)
		}
	}
}

// Replicas on one machine need not say where they listen.
func TestPeerOnLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:2528", "localhost:2528", "[::1]:2528"} {
		c, _, err := Load(Options{Path: write(t, "replicas: {engine: 'nats://n', keys: [0123456789abcdef], advertise: '"+addr+"'}\n"+notebook)})
		if err != nil {
			t.Fatal(err)
		}
		if c.Replicas.Peer != addr {
			t.Errorf("advertised as %s, a replica listens on %q", addr, c.Replicas.Peer)
		}
	}
}

// Warnings of the engine and of keys, beside that of a peer port without TLS.
func TestReplicaWarnings(t *testing.T) {
	const (
		good      = "VbY7q+Ws0ZtR2gKd8fq2mz0x"
		openNATS  = "c.yaml:1: replicas.engine: is beyond this machine, and has no credentials: whoever reaches it can end sessions; have NATS want a password, and write nats://user:password@ before each host, or name a file in credentials"
		openRedis = "c.yaml:1: replicas.engine: is beyond this machine, and has no credentials: whoever reaches it can end sessions; have Redis want a password, and write user:password@ before the first host"
		bareNATS  = "c.yaml:1: replicas.engine: is beyond this machine, and does not insist on TLS, so that others may read and alter on the way what replicas tell each other, and the password; write tls://, or set engine_tls, unless the network encrypts it"
		bareRedis = "c.yaml:1: replicas.engine: is beyond this machine, and without TLS, so that others may read and alter on the way what replicas tell each other, and the password; write rediss for redis in it, unless the network encrypts it"
	)
	guessed := func(i, why string) string {
		return "c.yaml:1: replicas.keys." + i + ": can be guessed: it " + why + "; put one that openssl rand -base64 32 prints into its place, in the three steps of docs/replicas.md"
	}
	for _, tt := range []struct {
		name, engine, keys string
		want               []string
	}{
		{"NATS", "engine: 'nats://n'", good, []string{openNATS, bareNATS}},
		{"NATS with a password", "engine: 'nats://u:s3cret@n'", good, []string{bareNATS}},
		{"NATS with a token", "engine: 'tls://s3cret@n'", good, nil},
		{"one of two NATS without", "engine: 'tls://s3cret@n,m'", good, []string{openNATS}},
		{"NATS with a file of credentials", "engine: 'tls://n', credentials: nats.creds", good, nil},
		{"NATS with a certificate", "engine: 'nats://n', engine_tls: {cert: cert.pem, key: key.pem}", good, nil},
		{"NATS with an authority alone", "engine: 'nats://n', engine_tls: {ca: ca.pem}", good, []string{openNATS}},
		{"NATS on this machine", "engine: 'nats://127.0.0.1:4222,nats://localhost:4223,[::1]:4224'", good, nil},
		{"NATS, one of them on this machine", "engine: 'nats://127.0.0.1:4222,nats://u:s3cret@n'", good, []string{bareNATS}},
		{"Redis", "engine: 'redis://r'", good, []string{openRedis, bareRedis}},
		{"Redis with a password", "engine: 'redis://:s3cret@r'", good, []string{bareRedis}},
		{"Redis with TLS", "engine: 'rediss://r'", good, []string{openRedis}},
		{"Redis on this machine", "engine: 'redis://127.0.0.1:6379'", good, nil},
		{"Sentinels with TLS and a password", "engine: 'rediss+sentinel://:s3cret@a,b?master_name=m'", good, nil},
		{"a cluster without TLS", "engine: 'redis+cluster://:s3cret@a,b'", good, []string{bareRedis}},
		{"names", "peers: 'dns://r:1'", good, nil},
		{"TLS in steps, on this machine", "peers: 'dns://r:1', tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem, plaintext: true}", good, nil},
		{"keys of words, and of repetitions", "peers: 'dns://r:1'", good + ", the-secret-key-of-mcpbridge, abcdabcdabcdabcdabcdabcd", []string{
			guessed("1", "is made of common words"), guessed("2", "repeats itself")}},
		{"a short key", "peers: 'dns://r:1'", "3f5bd70e9c2a41f8", []string{guessed("0", "is short for the characters that it has")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "replicas: {"+tt.engine+", keys: ["+tt.keys+"], peer: '127.0.0.1:2528'}\n"+notebook)
			writeCertificates(t)
			_, warnings, err := Load(Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				if text := w.String(); !strings.Contains(text, "chmod") {
					got = append(got, text)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("warnings =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// Plaintext beside TLS is for the time of a change.
func TestPlaintextBetweenReplicas(t *testing.T) {
	path := write(t, "replicas: {peers: 'dns://r:1', keys: [VbY7q+Ws0ZtR2gKd8fq2mz0x], peer: '10.0.0.7:2528', tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem, plaintext: true}}\n"+notebook)
	writeCertificates(t)
	_, warnings, err := Load(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	const want = "c.yaml:1: replicas.tls.plaintext: lets replicas reach each other without TLS"
	for _, w := range warnings {
		if strings.HasPrefix(w.String(), want) {
			return
		}
	}
	t.Errorf("warnings = %v, want one that begins with %q", warnings, want)
}
