package replicas

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A Kind is an engine, and how its servers stand together.
type Kind int

// The kinds of engines.
const (
	NATS     Kind = iota + 1 // one server, or several of a cluster
	Redis                    // one server
	Sentinel                 // a master of Redis, which the Sentinels name
	Cluster                  // of Redis
)

// scheme is what a scheme says.
type scheme struct {
	kind Kind
	tls  bool
	port string // where none is written
}

var schemes = map[string]scheme{
	"nats": {NATS, false, "4222"}, "tls": {NATS, true, "4222"},
	"redis": {Redis, false, "6379"}, "rediss": {Redis, true, "6379"},
	"redis+sentinel": {Sentinel, false, "26379"}, "rediss+sentinel": {Sentinel, true, "26379"},
	"redis+cluster": {Cluster, false, "6379"}, "rediss+cluster": {Cluster, true, "6379"},
}

// A URL is that of an engine.
type URL struct {
	Kind  Kind
	TLS   bool   // the scheme asks for it
	Hosts []Host // at least one; only the first one of Redis has a User

	DB       int    // of Redis, except of a cluster
	Sentinel Master // of Kind Sentinel

	// HandshakeFirst says that a NATS server wants TLS from the first byte.
	HandshakeFirst bool
}

// A Host is one server.
type Host struct {
	Addr string        // host:port
	User *url.Userinfo // nil if none stands there
}

// A Master is what Sentinels are asked for, and by whom.
type Master struct{ Name, User, Password string }

var (
	errForm = errors.New("is not the URL of an engine; write nats://host:4222 or redis://host:6379, with user:password@ before the host if it wants them, and in them %2F, %3F, %40 and %2C for / ? @ and ,")
	errName = errors.New("has no master_name; write redis+sentinel://host:26379?master_name=mymaster, as the Sentinels call it")
)

// ParseURL reads a URL.
func ParseURL(text string) (*URL, error) {
	name, rest, ok := strings.Cut(text, "://")
	if !ok || name == "" {
		return nil, errForm
	}
	s, known := schemes[name]
	if !known {
		return nil, fmt.Errorf("%s:// is no engine; write nats:// or tls:// for NATS, redis:// or rediss:// for Redis, and redis+sentinel:// or redis+cluster:// for several of it", name)
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") {
		return nil, errForm
	}
	u := &URL{Kind: s.kind, TLS: s.tls}
	hosts, path := rest, ""
	if s.kind != NATS {
		hosts, path, _ = strings.Cut(rest, "/")
	}
	var err error
	if u.Hosts, err = parseHosts(name, hosts, s.port); err != nil {
		return nil, err
	}
	return u, cmp.Or(u.check(name), u.database(path), u.options(name, query))
}

// parseHosts reads hosts that are separated by commas.
func parseHosts(scheme, text, port string) (all []Host, err error) {
	for _, part := range parts(scheme, text) {
		u, err := url.Parse(part)
		if err != nil || u.Hostname() == "" || u.Scheme != scheme || strings.Trim(u.Path, "/") != "" {
			return nil, errForm
		}
		p := u.Port()
		p = cmp.Or(p, port)
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, errForm
		}
		all = append(all, Host{Addr: net.JoinHostPort(u.Hostname(), p), User: u.User})
	}
	return all, nil
}

// parts returns the URL of each host: those after the first may leave out the scheme.
func parts(scheme, text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); !strings.Contains(part, "://") {
			part = scheme + "://" + part
		}
		out = append(out, part)
	}
	return out
}

// check refuses hosts that the kind can't have.
func (u *URL) check(scheme string) error {
	if u.Kind == NATS {
		return nil
	}
	if _, has := u.Hosts[0].User.Password(); u.Hosts[0].User != nil && !has {
		return fmt.Errorf("has a user without a password; write %s://user:password@host, or %[1]s://:password@host for the default user", scheme)
	}
	if u.Kind == Redis && len(u.Hosts) > 1 {
		s := strings.TrimPrefix(scheme, "redis")
		return fmt.Errorf("names several hosts of Redis; write redis%s+sentinel://host:26379,host:26379?master_name=mymaster for Sentinels, redis%[1]s+cluster:// for a cluster, or one host", s)
	}
	for _, h := range u.Hosts[1:] {
		if h.User != nil {
			return errors.New("has a user or password before a host that is not the first; write them once, before the first host: all servers are told the same")
		}
	}
	return nil
}

// database reads the number of a database of Redis.
func (u *URL) database(path string) (err error) {
	if path == "" {
		return nil
	}
	if u.Kind == Cluster {
		return errors.New("has a database, and a cluster of Redis has no others than 0; remove what follows the hosts")
	}
	if u.DB, err = strconv.Atoi(path); err != nil || u.DB < 0 {
		return errors.New("has something after the host that is no number of a database; write redis://host:6379/0")
	}
	return nil
}

// options reads what follows a question mark.
func (u *URL) options(scheme, query string) error {
	q, err := url.ParseQuery(query)
	if err != nil {
		return errOptions(scheme, u.Kind)
	}
	for name, values := range q {
		if len(values) != 1 || !u.option(name, values[0]) {
			return errOptions(scheme, u.Kind)
		}
	}
	switch {
	case u.Kind == Sentinel && u.Sentinel.Name == "":
		return errName
	case u.Sentinel.User != "" && u.Sentinel.Password == "":
		return errors.New("has sentinel_username without sentinel_password; write both, or remove it")
	}
	return nil
}

// option notes one option. It is false if there is none of that name and value.
func (u *URL) option(name, value string) bool {
	switch {
	case u.Kind == NATS && u.TLS && name == "handshake_first" && value == "true":
		u.HandshakeFirst = true
	case u.Kind == Sentinel && name == "master_name":
		u.Sentinel.Name = value
	case u.Kind == Sentinel && name == "sentinel_username":
		u.Sentinel.User = value
	case u.Kind == Sentinel && name == "sentinel_password":
		u.Sentinel.Password = value
	default:
		return false
	}
	return true
}

// errOptions says which options there are. The one that was written may be a piece of a
// password.
func errOptions(scheme string, k Kind) error {
	has := "after ? there is none"
	switch {
	case k == Sentinel:
		has = "after ? there are master_name, sentinel_username and sentinel_password"
	case scheme == "tls":
		has = "after ? there is handshake_first=true"
	case k == Redis:
		has += "; master_name is for redis+sentinel://"
	}
	return fmt.Errorf("has an option that %s:// does not know: %s; write %%3F for a question mark in a password", scheme, has)
}

// URLSecrets returns the passwords in a URL, which may be wrong in any way, and users without
// a password: those are tokens.
func URLSecrets(text string) (out []string) {
	name, rest, _ := strings.Cut(text, "://")
	hosts, query, _ := strings.Cut(rest, "?")
	for _, part := range parts(name, hosts) {
		u, err := url.Parse(part)
		if err != nil || u.User == nil {
			continue
		}
		password, has := u.User.Password()
		if !has {
			password = u.User.Username() // the name of a user beside a password is no secret
		}
		out = append(out, password)
	}
	q, _ := url.ParseQuery(query)
	return append(out, q["sentinel_password"]...)
}
