package replicas

import "testing"

// A URL of the other package names that, and is not repeated.
func TestParseForAPackage(t *testing.T) {
	const other = "is one of another package; import github.com/mcpbridge/mcpbridge/gateway/replicas/"
	for url, want := range map[string][2]string{ // the error as NATS, and as Redis
		"nats://u:s3cret@n":  {"", other + "nats, and use its Engine"},
		"tls://n":            {"", other + "nats, and use its Engine"},
		"redis://u:s3cret@r": {other + "redis, and use its Engine", ""},
		"rediss://r":         {other + "redis, and use its Engine", ""},
		"redis+sentinel://u:s3cret@s?master_name=mine": {other + "redis, and use its Engine", ""},
		"rediss+cluster://c":                           {other + "redis, and use its Engine", ""},
		"nats:4222":                                    {errForm.Error(), errForm.Error()},
	} {
		for i, parse := range []func(string) (*URL, error){ParseNATS, ParseRedis} {
			u, err := parse(url)
			switch {
			case want[i] != "" && (err == nil || err.Error() != want[i]):
				t.Errorf("%s as %v = %v, want %s", url, []Kind{NATS, Redis}[i].Package(), err, want[i])
			case want[i] == "" && (err != nil || u == nil):
				t.Errorf("%s as %v = %v, %v, want no error", url, []Kind{NATS, Redis}[i].Package(), u, err)
			}
		}
	}
}
