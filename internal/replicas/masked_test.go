package replicas

import "testing"

func TestMasked(t *testing.T) {
	for in, want := range map[string]string{
		"nats://u:s3cret@a,b:4223":                                  "nats://a:4222,b:4223",
		"tls://s3cret@a?handshake_first=true":                       "tls://a:4222?handshake_first=true",
		"redis://:s3cret@[::1]/3":                                   "redis://[::1]:6379/3",
		"rediss://u:s3cret@r":                                       "rediss://r:6379",
		"rediss+cluster://:s3cret@a,b":                              "rediss+cluster://a:6379,b:6379",
		"redis+sentinel://a,b/2?master_name=m&sentinel_password=s3": "redis+sentinel://a:26379,b:26379/2?master_name=m",
	} {
		u, err := ParseURL(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Masked(); got != want {
			t.Errorf("Masked of %s = %s, want %s", in, got, want)
		}
		if _, err := ParseURL(want); err != nil {
			t.Errorf("what is shown of %s: %v", in, err)
		}
	}
}
