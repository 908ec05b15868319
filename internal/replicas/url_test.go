package replicas

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	user := url.UserPassword("u", "p@ss")
	for in, want := range map[string]*URL{
		"nats://n":                       {Kind: NATS, Hosts: []Host{{Addr: "n:4222"}}},
		"nats://u:p%40ss@a:1,b,nats://c": {Kind: NATS, Hosts: []Host{{Addr: "a:1", User: user}, {Addr: "b:4222"}, {Addr: "c:4222"}}},
		"nats://token@[fd00::7]:4222/":   {Kind: NATS, Hosts: []Host{{Addr: "[fd00::7]:4222", User: url.User("token")}}},
		"tls://a?handshake_first=true":   {Kind: NATS, TLS: true, Hosts: []Host{{Addr: "a:4222"}}, HandshakeFirst: true},
		"redis://r":                      {Kind: Redis, Hosts: []Host{{Addr: "r:6379"}}},
		"rediss://u:p%40ss@r:1/3":        {Kind: Redis, TLS: true, Hosts: []Host{{Addr: "r:1", User: user}}, DB: 3},
		"redis+sentinel://u:p%40ss@a, b:7/2?master_name=m&sentinel_username=s&sentinel_password=t%26": {
			Kind: Sentinel, Hosts: []Host{{Addr: "a:26379", User: user}, {Addr: "b:7"}}, DB: 2, Sentinel: Master{"m", "s", "t&"}},
		"rediss+sentinel://a?master_name=m":    {Kind: Sentinel, TLS: true, Hosts: []Host{{Addr: "a:26379"}}, Sentinel: Master{Name: "m"}},
		"redis+cluster://a,b:7,[fd00::7]":      {Kind: Cluster, Hosts: []Host{{Addr: "a:6379"}, {Addr: "b:7"}, {Addr: "[fd00::7]:6379"}}},
		"rediss+cluster://u:p%40ss@one:6380,b": {Kind: Cluster, TLS: true, Hosts: []Host{{Addr: "one:6380", User: user}, {Addr: "b:6379"}}},
	} {
		got, err := ParseURL(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseURL(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	const form = "is not the URL of an engine; write nats://host:4222 or redis://host:6379, with user:password@ before the host if it wants them, and in them %2F, %3F, %40 and %2C for / ? @ and ,"
	const encode = "; write %3F for a question mark in a password"
	for in, want := range map[string]string{
		"":                           form,
		"nats":                       form,
		"nats://":                    form,
		"nats://u:s3cret@":           form,
		"nats://a,,b":                form,
		"nats://a,redis://b":         form,
		"nats://a/s3cret":            form,
		"redis://a:65536":            form,
		"redis://a:port":             form,
		"redis://u:s3cret@a#b":       form,
		"redis://u:s3/cret@a":        form,
		"etcd://u:s3cret@e":          "etcd:// is no engine; write nats:// or tls:// for NATS, redis:// or rediss:// for Redis, and redis+sentinel:// or redis+cluster:// for several of it",
		"redis://a,b":                "names several hosts of Redis; write redis+sentinel://host:26379,host:26379?master_name=mymaster for Sentinels, redis+cluster:// for a cluster, or one host",
		"rediss://a,b":               "names several hosts of Redis; write rediss+sentinel://host:26379,host:26379?master_name=mymaster for Sentinels, rediss+cluster:// for a cluster, or one host",
		"redis://s3cret@a":           "has a user without a password; write redis://user:password@host, or redis://:password@host for the default user",
		"redis+cluster://a,u:x@b":    "has a user or password before a host that is not the first; write them once, before the first host: all servers are told the same",
		"redis+cluster://a/0":        "has a database, and a cluster of Redis has no others than 0; remove what follows the hosts",
		"redis://a/s3cret":           "has something after the host that is no number of a database; write redis://host:6379/0",
		"redis://a/-1":               "has something after the host that is no number of a database; write redis://host:6379/0",
		"redis+sentinel://a":         "has no master_name; write redis+sentinel://host:26379?master_name=mymaster, as the Sentinels call it",
		"redis://a?master_name=m":    "has an option that redis:// does not know: after ? there is none; master_name is for redis+sentinel://" + encode,
		"rediss://a?skip_verify=1":   "has an option that rediss:// does not know: after ? there is none; master_name is for redis+sentinel://" + encode,
		"redis://a:1?s3cret@b":       "has an option that redis:// does not know: after ? there is none; master_name is for redis+sentinel://" + encode,
		"nats://a?handshake_first=1": "has an option that nats:// does not know: after ? there is none" + encode,
		"tls://a?handshake_first=1":  "has an option that tls:// does not know: after ? there is handshake_first=true" + encode,
		"redis+cluster://a?x=y":      "has an option that redis+cluster:// does not know: after ? there is none" + encode,
		"redis+sentinel://a?master_name=m&master_name=n":       "has an option that redis+sentinel:// does not know: after ? there are master_name, sentinel_username and sentinel_password" + encode,
		"redis+sentinel://a?master_name=m&sentinel_username=u": "has sentinel_username without sentinel_password; write both, or remove it",
	} {
		_, err := ParseURL(in)
		if err == nil || err.Error() != want {
			t.Errorf("ParseURL(%q) =\n%v\nwant\n%s", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error of %q has a secret", in)
		}
	}
}

func TestURLSecrets(t *testing.T) {
	for in, want := range map[string][]string{
		"nats://user:first@a:4222,third@b:4222,v:second@c":                                                {"first", "third", "second"},
		"redis+sentinel://user:first@a,b/0?master_name=m&sentinel_username=s&sentinel_password=sec%20ond": {"first", "sec ond"},
		"etcd://user:first@a": {"first"},
		"nats://a":            nil,
		"":                    nil,
	} {
		if got := URLSecrets(in); !slices.Equal(got, want) {
			t.Errorf("URLSecrets(%q) = %q, want %q", in, got, want)
		}
	}
}
