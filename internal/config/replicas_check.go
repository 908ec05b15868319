package config

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/server"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Check checks what is below replicas. Its errors contain neither a key nor the engine's URL.
// Nobody else may listen on the address for peers: taken are those of clients and admin.
func (r *Replicas) Check(rep *key.Report, taken ...string) {
	if r == nil {
		return
	}
	switch {
	case r.Engine == "" && r.Peers == "":
		rep.Fail(replicasKey, "want engine or peers below it; write engine: nats://nats:4222, or peers: dns://mcpbridge-headless:2528")
	case r.Engine != "" && r.Peers != "":
		rep.Fail(replicasKey, "engine and peers are both set; remove one of them: an engine knows the peers")
	case r.Engine != "":
		r.checkEngine(rep)
	default:
		r.checkPeers(rep)
	}
	r.checkKeys(rep)
	r.checkPeer(rep, taken)
	if len(r.Prefix) > 64 || !prefixForm.MatchString(r.Prefix) {
		rep.Fail(key.Join(replicasKey, "prefix"), "%q can't begin the name of a bucket; use letters, digits, - and _, at most 64", r.Prefix)
	}
	r.checkTLS(rep)
}

// checkKeys warns of keys that others may find: whoever has one is believed to be a replica.
func (r *Replicas) checkKeys(rep *key.Report) {
	path := key.Join(replicasKey, "keys")
	if len(r.Keys) == 0 {
		rep.Fail(path, "is missing: replicas would believe anybody; write a list of random secrets, as openssl rand -base64 32 prints one, the same for all replicas")
	}
	value.CheckSecrets(rep, path, r.Keys)
	for i, k := range r.Keys {
		if at := key.Join(path, strconv.Itoa(i)); !rep.Mistaken(at) {
			if why := value.Guessable(k); why != "" {
				rep.Warn(at, "can be guessed: it %s; put one that openssl rand -base64 32 prints into its place, in the three steps of docs/replicas.md", why)
			}
		}
	}
}

func (r *Replicas) checkEngine(rep *key.Report) {
	u, err := replicas.ParseURL(r.Engine)
	switch {
	case err != nil:
		rep.Fail(key.Join(replicasKey, "engine"), "%v", err)
	case u.Kind != replicas.NATS && r.Credentials != "":
		rep.Fail(key.Join(replicasKey, "credentials"), "is for NATS alone; write the user and password of Redis into engine: rediss://user:password@host:6379")
	case u.Kind != replicas.NATS && !u.TLS && r.EngineTLS != server.TLS{}:
		rep.Fail(key.Join(replicasKey, "engine_tls"), "has no effect, since engine is without TLS; write rediss://, or remove it")
	default:
		r.warnOfEngine(rep, u)
	}
}

// warnOfEngine warns of an engine beyond this machine that anybody may use, or that others may
// read and alter on the way. Hosts are not named: one may be a piece of a password.
func (r *Replicas) warnOfEngine(rep *key.Report, u *replicas.URL) {
	beyond := func(h replicas.Host) bool {
		host, _, _ := net.SplitHostPort(h.Addr) // Parse has joined it
		return !value.Loopback(host)
	}
	if !slices.ContainsFunc(u.Hosts, beyond) {
		return
	}
	path := key.Join(replicasKey, "engine")
	open := func(h replicas.Host) bool { return beyond(h) && h.User == nil }
	switch {
	case r.Credentials != "" || r.EngineTLS.Cert != "":
	case u.Kind == replicas.NATS && slices.ContainsFunc(u.Hosts, open):
		rep.Warn(path, "is beyond this machine, and has no credentials: whoever reaches it can end sessions; have NATS want a password, and write nats://user:password@ before each host, or name a file in credentials")
	case u.Kind != replicas.NATS && u.Hosts[0].User == nil:
		rep.Warn(path, "is beyond this machine, and has no credentials: whoever reaches it can end sessions; have Redis want a password, and write user:password@ before the first host")
	}
	switch {
	case u.TLS || r.EngineTLS != server.TLS{}:
	case u.Kind == replicas.NATS:
		rep.Warn(path, "is beyond this machine, and does not insist on TLS, so that others may read and alter on the way what replicas tell each other, and the password; write tls://, or set engine_tls, unless the network encrypts it")
	default:
		rep.Warn(path, "is beyond this machine, and without TLS, so that others may read and alter on the way what replicas tell each other, and the password; write rediss for redis in it, unless the network encrypts it")
	}
}

func (r *Replicas) checkPeers(rep *key.Report) {
	names, ok := strings.CutPrefix(r.Peers, "dns://")
	for name := range strings.SplitSeq(names, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(name))
		ok = ok && err == nil && host != "" && value.IsPort(port)
	}
	if !ok {
		rep.Fail(key.Join(replicasKey, "peers"), "%q is not dns:// and the host and port of the replicas; write dns://mcpbridge-headless:2528", r.Peers)
	}
	for name, set := range map[string]bool{"engine_tls": r.EngineTLS != server.TLS{}, "credentials": r.Credentials != "", "heartbeat": r.Heartbeat != time.Second && !rep.Mistaken(key.Join(replicasKey, "heartbeat"))} {
		if set {
			rep.Fail(key.Join(replicasKey, name), "is for an engine, and there is none; remove it")
		}
	}
}

func (r *Replicas) checkPeer(rep *key.Report, taken []string) {
	host, port, err := net.SplitHostPort(r.Peer)
	switch {
	case r.Peer == "":
		rep.Fail(key.Join(replicasKey, "peer"), "is missing: nothing says where other replicas connect; write the address by which they reach this one, as in ${POD_IP}:2528, or 0.0.0.0:2528 and that one as advertise")
		return
	case err != nil || !value.IsPort(port):
		rep.Fail(key.Join(replicasKey, "peer"), "%q is not an address; write host:port, as in 0.0.0.0:2528", r.Peer)
		return
	case slices.Contains(taken, r.Peer) && port != "0":
		rep.Fail(key.Join(replicasKey, "peer"), "is the same address as listen or admin; choose another port, such as 2528")
	}
	r.checkAdvertise(rep, host)
	if r.TLS == (PeerTLS{}) && !value.Loopback(host) {
		rep.Warn(key.Join(replicasKey, "peer"), "can be reached from other machines without TLS, so that others can read and alter what replicas forward on the way, with the credentials of clients; set tls, unless the network encrypts it")
	}
}

// checkAdvertise checks how others reach the peer listener, which is on a host of this machine.
func (r *Replicas) checkAdvertise(rep *key.Report, host string) {
	ip, _ := netip.ParseAddr(host)
	to, port, err := net.SplitHostPort(r.Advertise)
	switch {
	case r.Advertise == "" && (host == "" || ip.IsUnspecified()):
		rep.Fail(key.Join(replicasKey, "advertise"), "is missing: peer names no single address; write how other replicas reach this one, as in ${POD_IP}:2528")
	case r.Advertise != "" && (err != nil || to == "" || !value.IsPort(port) || port == "0"):
		rep.Fail(key.Join(replicasKey, "advertise"), "%q is not an address; write host:port, as in 10.0.0.7:2528 or [fd00::7]:2528", r.Advertise)
	case r.Advertise != "" && value.Loopback(to) && !value.Loopback(host):
		rep.Fail(key.Join(replicasKey, "advertise"), "is an address of this machine alone, and peer can be reached from others, where no replica would find it; write the address by which they reach this one, as in ${POD_IP}:2528, or remove peer if all replicas are on this machine")
	}
}

// warnOfPlaintext warns of what was to be removed once all replicas have TLS.
func (r *Replicas) warnOfPlaintext(rep *key.Report) {
	if host, _, _ := net.SplitHostPort(r.Peer); r.TLS.Plaintext && !value.Loopback(host) {
		rep.Warn(key.Join(replicasKey, "tls", "plaintext"), "lets replicas reach each other without TLS, so that others can read and alter on the way what they forward; remove it once all replicas have tls, in the steps of docs/replicas.md")
	}
}

func (r *Replicas) checkTLS(rep *key.Report) {
	t, path := &r.TLS, key.Join(replicasKey, "tls")
	switch {
	case *t == PeerTLS{}:
	case t.Cert == "":
		rep.Fail(key.Join(path, "cert"), "is missing: each replica is a server to the others; name the file of its certificate, and that of its key")
	case t.ClientCA == "":
		rep.Fail(key.Join(path, "client_ca"), "is missing: nothing says whose certificates replicas have; name the file of their authority")
	case t.ServerName != "" && !value.IsServerName(t.ServerName):
		rep.Fail(key.Join(path, "server_name"), "%q is not a host name; write one such as mcpbridge.internal.example, without a port", t.ServerName)
	default:
		server.CheckFiles(rep, path, t.Files())
		r.warnOfPlaintext(rep)
	}
	r.EngineTLS.Check(rep, key.Join(replicasKey, "engine_tls"), r.Engine)
}
