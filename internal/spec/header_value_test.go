package spec

import (
	"encoding/base64"
	"strings"
	"testing"
)

// FuzzDecodeHeader reads and writes header values: what is taken for a name has one
// spelling in base64, and one reading; any name can be written, in plain ASCII that
// nobody on the way trims or reads otherwise.
func FuzzDecodeHeader(f *testing.F) {
	for _, value := range []string{"", "x", "é", " x", "x ", "a\tb", "\r\n", "a\x7f", "=?base64?eA==?=", "=?base64?eB==?=", "=?base64??=", "=?BASE64?eA==?=", "=?base64?", EncodeHeader("=?base64?eA==?=")} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		name, ok := DecodeHeader(value)
		if ok && name != value && encodedPrefix+base64.StdEncoding.EncodeToString([]byte(name))+encodedSuffix != value {
			t.Errorf("DecodeHeader(%q) = %q, which is written otherwise", value, name)
		}
		if ok && name == value && len(value) >= 11 && strings.EqualFold(value[:9], encodedPrefix) && strings.HasSuffix(value, encodedSuffix) {
			t.Errorf("DecodeHeader(%q) takes it as it is, and others may not", value)
		}
		for _, name := range []string{value, name} {
			written := EncodeHeader(name)
			if back, ok := DecodeHeader(written); !ok || back != name {
				t.Errorf("DecodeHeader(EncodeHeader(%q)) = %q, %v", name, back, ok)
			}
			if strings.TrimSpace(written) != written || written == "" || strings.ContainsFunc(written, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
				t.Errorf("EncodeHeader(%q) = %q, which a header may not carry as it is", name, written)
			}
		}
	})
}
