package value

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func TestGuessable(t *testing.T) {
	const short, words, repeats, runs = "is short for the characters that it has", "is made of common words", "repeats itself", "is made of characters that follow each other"
	for _, tt := range []struct{ secret, want string }{
		{"8fq2mz0xk7vhb3ny", ""}, // letters and digits
		{"VbY7q+Ws0ZtR2gKd", ""},
		{"b1946ac92492d2347c6235b4d2611184", ""},
		{"3f5bd70e9c2a41f8", short}, // 64 bits
		{"8163920475593816", short},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", repeats},
		{"8fq2mz0x8fq2mz0x8fq2mz0x8fq2mz0x", repeats},
		{"0123456789abcdef0123456789abcdef", repeats},
		{"0123456789abcdefghijklmnopqrstuvwxyz", runs},
		{"qwertzuiopasdfghjklyxcvbnm", runs},
		{"the-secret-key-of-mcpbridge", words},
		{"a key of sixteen characters and more", words},
		{"Ch4ngeM3-Ch4ng3Me-Please!", words},
		{"correct horse battery staple", words},
		{"PASSWORD-of-Replicas", words},
		{"", short},
	} {
		if got := Guessable(tt.secret); got != tt.want {
			t.Errorf("Guessable(%q) = %q, want %q", tt.secret, got, tt.want)
		}
	}
}

// What the command makes that warnings name is hardly ever one of those, nor what other programs
// make: a random text may look as if it were not.
func TestRandomSecretsAreNotGuessable(t *testing.T) {
	wrong := 0
	for range 500 {
		b := make([]byte, 32)
		_, _ = rand.Read(b)
		for _, s := range []string{base64.StdEncoding.EncodeToString(b), hex.EncodeToString(b), hex.EncodeToString(b[:16]), base64.RawURLEncoding.EncodeToString(b[:16]), rand.Text(), strings.ToLower(rand.Text())} {
			if why := Guessable(s); why != "" {
				t.Logf("%q %s", s, why)
				wrong++
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d of 3000 random secrets can be guessed", wrong)
	}
}
