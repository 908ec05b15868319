package replicas

import (
	"crypto/sha256"
	"encoding/base64"
	"iter"
)

const (
	// MaxServers is how many servers a replica tells the others of: the first of them.
	MaxServers = 256
	// digestSize is what is told of each, in bytes, and digestLen its length as text.
	digestSize = 3
	digestLen  = digestSize * 4 / 3
)

// Servers are digests of the names of the servers that a replica has: enough to find one that has
// a server which this one lacks. Two names may have the same.
type Servers string

// ServersOf returns what is told of servers: of the first MaxServers of them.
func ServersOf(names iter.Seq[string]) Servers {
	var out []byte
	for name := range names {
		if len(out) == MaxServers*digestLen {
			break
		}
		out = append(out, digestOf(name)...)
	}
	return Servers(out)
}

// Has reports whether a server of that name is among them.
func (s Servers) Has(name string) bool {
	want := digestOf(name)
	for ; len(s) >= digestLen; s = s[digestLen:] {
		if string(s[:digestLen]) == want {
			return true
		}
	}
	return false
}

// Bounded returns what was read of another replica; nothing of what is too long.
func (s Servers) Bounded() Servers {
	if len(s) > MaxServers*digestLen {
		return ""
	}
	return s
}

func digestOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:digestSize])
}
