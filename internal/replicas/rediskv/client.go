package rediskv

import (
	"crypto/tls"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// patience bounds a dial, and each writing.
	patience = time.Second
	// answer bounds the wait for an answer. It is shorter than a dial, which begins by
	// asking a Sentinel: if that is silent, there is time to ask the others.
	answer = patience / 2
	// connections bounds those to each server, besides that for hints.
	connections = 20
	// follow is how often a command may be sent elsewhere by a cluster.
	follow = 3
	// failing is how long a server of a cluster is avoided that did not answer, in seconds.
	failing = 2
	// look is how often the slots of a cluster are asked for, where nothing else tells.
	look = 10 * time.Second
)

// newClient returns a client that connects when it is asked.
func newClient(o Options) redis.UniversalClient {
	switch o.URL.Kind {
	case replicas.Sentinel:
		return redis.NewFailoverClient(sentinelOptions(o))
	case replicas.Cluster:
		return redis.NewClusterClient(clusterOptions(o))
	}
	return redis.NewClient(options(o))
}

func options(o Options) *redis.Options {
	user, password := account(o)
	return &redis.Options{
		Addr: o.URL.Hosts[0].Addr, DB: o.URL.DB, Username: user, Password: password, TLSConfig: config(o), Dialer: o.Dial,
		ClientName: o.Name, DisableIdentity: true, Protocol: 2,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		PoolSize: connections, MaxActiveConns: connections,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func sentinelOptions(o Options) *redis.FailoverOptions {
	user, password := account(o)
	return &redis.FailoverOptions{
		MasterName: o.URL.Sentinel.Name, SentinelAddrs: addrs(o.URL.Hosts),
		SentinelUsername: o.URL.Sentinel.User, SentinelPassword: o.URL.Sentinel.Password,
		DB: o.URL.DB, Username: user, Password: password, TLSConfig: config(o), Dialer: o.Dial,
		ClientName: o.Name, DisableIdentity: true, Protocol: 2,
		DialTimeout: patience, ReadTimeout: answer, WriteTimeout: patience, PoolTimeout: patience,
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		PoolSize: connections, MaxActiveConns: connections,
	}
}

func clusterOptions(o Options) *redis.ClusterOptions {
	user, password := account(o)
	return &redis.ClusterOptions{
		Addrs:    addrs(o.URL.Hosts),
		Username: user, Password: password, TLSConfig: config(o), Dialer: o.Dial,
		ClientName: o.Name, DisableIdentity: true, Protocol: 2,
		DialTimeout: answer, ReadTimeout: answer, WriteTimeout: patience, PoolTimeout: patience,
		ContextTimeoutEnabled: true, MaxRedirects: follow, DialerRetries: 1,
		PoolSize: connections, MaxActiveConns: connections,
		DisableRoutingPolicies: true, FailingTimeoutSeconds: failing, ClusterStateReloadInterval: look,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// config is that of TLS: each server has to be who it is connected to as, unless the
// options name all of them.
func config(o Options) *tls.Config {
	switch {
	case !o.URL.TLS:
		return nil
	case o.TLS == nil:
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o.TLS.Clone()
}

// account is who asks, by the URL.
func account(o Options) (user, password string) {
	u := o.URL.Hosts[0].User
	password, _ = u.Password()
	return u.Username(), password
}

func addrs(hosts []replicas.Host) (all []string) {
	for _, h := range hosts {
		all = append(all, h.Addr)
	}
	return all
}
