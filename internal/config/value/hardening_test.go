package value

import (
	"strings"
	"testing"
)

// Of an environment that was chosen for others, names tell what is secret.
func TestHardeningInEnviron(t *testing.T) {
	got := strings.Join(SecretsInEnviron([]string{
		"GITHUB_TOKEN=one-secret", "api_key=two-secret", "SECRET_THING=three-secret", "DB_PASSWORD=four-secret",
		"HTTPS_PROXY=http://ada:five-secret@proxy:3128", "EDITOR=harmless", "NO_PROXY=harmless", "HOME=/home/ada",
	}), " ")
	for _, want := range []string{"one-secret", "two-secret", "three-secret", "four-secret", "five-secret"} {
		if !strings.Contains(got, want) {
			t.Errorf("SecretsInEnviron() = %s, lacks %s", got, want)
		}
	}
	if strings.Contains(got, "harmless") || strings.Contains(got, "/home") {
		t.Errorf("SecretsInEnviron() = %s, with what is no secret", got)
	}
}
