package replicas

import (
	"net/url"
	"testing"
)

func TestAddress(t *testing.T) {
	for hostport, want := range map[string]string{
		"[10.0.0.7]:2528": "10.0.0.7:2528",
		"10.0.0.7:2528":   "10.0.0.7:2528",
		"[fd00::7]:2528":  "[fd00::7]:2528",
		"pod-1.peer:2528": "pod-1.peer:2528",
		"":                "",
	} {
		got := Address(hostport)
		if got != want {
			t.Errorf("Address(%q) = %q, want %q", hostport, got, want)
		}
		if _, err := url.Parse("http://" + got + "/peer"); err != nil {
			t.Errorf("a URL of it: %v", err)
		}
	}
}
