package config

import "testing"

// A text is the file of the audit log, in a file and in the environment; both go with keys of
// the other.
func TestAuditIsATextOrKeys(t *testing.T) {
	for _, tt := range []struct {
		in      string
		environ []string
		want    Audit
	}{
		{"", nil, Audit{File: "off"}},
		{"audit: off\n", nil, Audit{File: "off"}},
		{"audit: /var/log/a\n", nil, Audit{File: "/var/log/a"}},
		{"audit: {file: /var/log/a, required: true}\n", nil, Audit{"/var/log/a", true}},
		{"audit: {file: /var/log/a}\n", []string{"MCPBRIDGE_AUDIT__REQUIRED=true"}, Audit{"/var/log/a", true}},
		{"audit: /var/log/a\n", []string{"MCPBRIDGE_AUDIT=/b", "MCPBRIDGE_AUDIT__REQUIRED=true"}, Audit{"/b", true}},
		{"", []string{"MCPBRIDGE_AUDIT=stdout"}, Audit{File: "stdout"}},
	} {
		c, _, err := Load(Options{Path: write(t, tt.in+notebook), Environ: tt.environ})
		if err != nil || c.Audit != tt.want {
			t.Errorf("Load(%q, %q) = %+v, %v, want %+v", tt.in, tt.environ, c, err, tt.want)
		}
	}
	if a := (&Audit{File: "off"}); a.Path() != "" {
		t.Errorf("Path of off = %q", a.Path())
	}
}
