package replicas

import "fmt"

// packages is where the public packages are that have an engine each.
const packages = "github.com/mcpbridge/mcpbridge/gateway/replicas/"

// Package is the package that programs import for the kind.
func (k Kind) Package() string {
	if k == NATS {
		return packages + "nats"
	}
	return packages + "redis"
}

// ParseNATS reads the URL of a NATS, for the package of that.
func ParseNATS(text string) (*URL, error) { return parseFor(NATS, text) }

// ParseRedis reads the URL of a Redis of any kind, for the package of that.
func ParseRedis(text string) (*URL, error) { return parseFor(Redis, text) }

func parseFor(k Kind, text string) (*URL, error) {
	u, err := ParseURL(text)
	if err == nil && u.Kind.Package() != k.Package() {
		return nil, fmt.Errorf("is one of another package; import %s, and use its Engine", u.Kind.Package())
	}
	return u, err
}
