package remember

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Starting a command takes a key, a look-up and a record.
func BenchmarkStore(b *testing.B) {
	for _, files := range []int{1, 100, maxFiles} {
		s := Open(Options{Dir: filepath.Join(b.TempDir(), "servers")})
		if err := s.Keep(aKey, aRecord()); err != nil {
			b.Fatal(err)
		}
		for i := range files - 1 {
			if err := os.WriteFile(filepath.Join(s.dir, Key{1, byte(i >> 8), byte(i)}.file()), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("Lookup/files=%d", files), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.read(aKey); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("Keep/files=%d", files), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Keep(aKey, legacy); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	server := Server{Command: os.Args[0], Args: make([]string, 10), Env: os.Environ(), Capabilities: aRecord().Description.Capabilities}
	b.Run("Key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := server.Key(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
