package secret

import (
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// CheckKeys checks secrets that keys are made of. Its errors never contain one.
func CheckKeys(rep *problem.Report, path string, keys []string) {
	for i, k := range keys {
		if len(k) < minKey {
			rep.Fail(keypath.Join(path, strconv.Itoa(i)), "is shorter than %d characters; write a random secret, as openssl rand -base64 32 prints one", minKey)
		}
	}
}

// minKey is the least length of a secret that keys are made of, in bytes.
const minKey = 16
