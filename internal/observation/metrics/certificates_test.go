package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// When a certificate expires is asked at each scrape; without one nothing is told.
func TestCertificates(t *testing.T) {
	m := New("v1")
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	const name = "mcpbridge_certificate_expiry_timestamp_seconds"
	if got := scrape(); strings.Contains(got, name) {
		t.Errorf("without certificates the metrics have %s", name)
	}
	ends := time.Unix(1800000000, 0)
	m.WatchCertificates(map[string]func() time.Time{
		"tls":  func() time.Time { return ends },
		"none": func() time.Time { return time.Time{} },
	})
	for _, want := range []string{`{key="tls"} 1.8e+09`, `{key="tls"} 1.9e+09`} {
		if got := scrape(); !strings.Contains(got, name+want) || strings.Contains(got, `"none"`) {
			t.Errorf("the metrics lack %s%s, or have a certificate that is none", name, want)
		}
		ends = time.Unix(1900000000, 0) // its files were replaced
	}
	m.WatchCertificates(nil) // the configuration names none any more
	if got := scrape(); strings.Contains(got, name) {
		t.Errorf("the metrics have %s of a certificate that is not used any more", name)
	}
}
