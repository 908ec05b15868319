//go:build linux

package chart

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// certificates returns the one of a Secret, and those of its ca.crt.
func certificates(t *testing.T, s *corev1.Secret) (leaf *x509.Certificate, authorities *x509.CertPool) {
	t.Helper()
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	must(t, err)
	authorities = x509.NewCertPool()
	authorities.AppendCertsFromPEM(s.Data["ca.crt"])
	return pair.Leaf, authorities
}

// What is generated is good for all names, for servers and for clients, until its days are
// over; and no pod has the key that signs.
func TestGeneratedTLS(t *testing.T) {
	r := of(t, "generate")
	leaf, authorities := certificates(t, named[*corev1.Secret](r, "release-mcpbridge-tls"))
	config := r.config(t)
	peers := config["replicas"].(map[string]any)["tls"].(map[string]any)
	names := []string{"release-mcpbridge", "release-mcpbridge.tools.svc", "release-mcpbridge.tools.svc.cluster.local", "127.0.0.1", peers["server_name"].(string), *r.monitors()[0].Spec.Endpoints[0].TLSConfig.ServerName}
	for _, name := range names {
		for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: authorities, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
				t.Errorf("%s for the use %d: %v", name, use, err)
			}
		}
	}
	if days := time.Until(leaf.NotAfter).Hours() / 24; days < 824 || days > 825 {
		t.Errorf("it is valid for %.0f days", days)
	}
	if block, _ := pem.Decode(named[*corev1.Secret](r, "release-mcpbridge-authority").Data["tls.crt"]); block == nil || !bytes.Equal(block.Bytes, authority(t, authorities, leaf).Raw) {
		t.Error("the authority is not the one that is kept")
	}
	spec := r.deployment(t).Spec.Template.Spec
	for _, v := range spec.Volumes {
		if v.Secret != nil && strings.HasSuffix(v.Secret.SecretName, "-authority") {
			t.Errorf("pods have %s", v.Secret.SecretName)
		}
	}
	for _, name := range []string{"tls", "peer-tls"} {
		if s := volume(t, spec, name).Secret.SecretName; s != "release-mcpbridge-tls" {
			t.Errorf("%s is %s", name, s)
		}
	}
	if scheme := spec.Containers[0].ReadinessProbe.HTTPGet.Scheme; scheme != corev1.URISchemeHTTPS {
		t.Errorf("probes speak %s", scheme)
	}
}

// authority returns who has signed a certificate.
func authority(t *testing.T, authorities *x509.CertPool, leaf *x509.Certificate) *x509.Certificate {
	t.Helper()
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: authorities})
	must(t, err)
	return chains[0][len(chains[0])-1]
}

// had are the Secrets of a release as a cluster has them, one of them changed.
func (r *release) had(t *testing.T, change func(tls *corev1.Secret)) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	for _, s := range all[*corev1.Secret](r) {
		s = s.DeepCopy()
		if s.Namespace = "tools"; s.Name == "release-mcpbridge-tls" {
			change(s)
		}
		objects = append(objects, s)
	}
	return objects
}

// An upgrade keeps the certificate, makes a new one by the same authority in its last third
// and when its names change, and both anew only if the authority is gone.
func TestGeneratedTLSIsKeptAndRenewed(t *testing.T) {
	values := readValues(t, valuesFiles(t)["generate"])
	first := newRelease(t, values)
	of := func(r *release) (leaf, signed []byte) {
		made := named[*corev1.Secret](r, "release-mcpbridge-tls")
		if from, err := time.Parse(time.DateOnly, made.Annotations["mcpbridge.dev/renew-from"]); err != nil || time.Until(from).Hours()/24 < 540 || time.Until(from).Hours()/24 > 550 {
			t.Errorf("it is renewed from %s, %v", made.Annotations["mcpbridge.dev/renew-from"], err)
		}
		l, authorities := certificates(t, made)
		return l.Raw, authority(t, authorities, l).Raw
	}
	leaf, ca := of(first)
	for _, tt := range []struct {
		name               string
		change             func(*corev1.Secret)
		without            string
		keptLeaf, keptRoot bool
	}{
		{"as it was", func(*corev1.Secret) {}, "", true, true},
		{"in its last third", func(s *corev1.Secret) {
			s.Annotations["mcpbridge.dev/renew-from"] = time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
		}, "", false, true},
		{"with other names", func(s *corev1.Secret) { s.Annotations["mcpbridge.dev/names"] = "old.example.com" }, "", false, true},
		{"without annotations", func(s *corev1.Secret) { s.Annotations = nil }, "", false, true},
		{"without its authority", func(*corev1.Secret) {}, "release-mcpbridge-authority", false, false},
	} {
		had := slices.DeleteFunc(first.had(t, tt.change), func(o runtime.Object) bool { return o.(*corev1.Secret).Name == tt.without })
		l, root := of(upgraded(t, values, had...))
		if bytes.Equal(l, leaf) != tt.keptLeaf || bytes.Equal(root, ca) != tt.keptRoot {
			t.Errorf("%s: the certificate is kept: %v, its authority: %v", tt.name, bytes.Equal(l, leaf), bytes.Equal(root, ca))
		}
	}
}

// TLS by the chart is for those whom tls.for names, and never where a Secret is named.
func TestTLSFor(t *testing.T) {
	for _, tt := range []struct{ values, clients, peers string }{
		{`{}`, "", ""},
		{`{generate: true}`, "release-mcpbridge-tls", "release-mcpbridge-tls"},
		{`{generate: true, for: [peers]}`, "", "release-mcpbridge-tls"},
		{`{generate: true, for: [clients]}`, "release-mcpbridge-tls", ""},
		{`{generate: true, secret: mcpbridge-tls}`, "mcpbridge-tls", "release-mcpbridge-tls"},
		{`{issuer: {name: internal}}`, "release-mcpbridge-cert", "release-mcpbridge-cert"},
		{`{issuer: {name: internal}, for: [peers], secret: mcpbridge-tls}`, "mcpbridge-tls", "release-mcpbridge-cert"},
	} {
		r := newRelease(t, valuesOf(t, `{config: {allow_anonymous: true}, tls: `+tt.values+`}`))
		got := make(map[string]string)
		for _, v := range r.deployment(t).Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				got[v.Name] = v.Secret.SecretName
			}
		}
		_, clients := r.config(t)["tls"]
		_, peers := r.config(t)["replicas"].(map[string]any)["tls"]
		if got["tls"] != tt.clients || got["peer-tls"] != tt.peers || clients != (tt.clients != "") || peers != (tt.peers != "") {
			t.Errorf("%s is %v, with TLS for clients: %v, for replicas: %v", tt.values, got, clients, peers)
		}
		if made := named[*corev1.Secret](r, "release-mcpbridge-authority") != nil; made != strings.Contains(tt.values, "generate") {
			t.Errorf("%s has an authority: %v", tt.values, made)
		}
	}
}

// cert-manager is asked for a certificate of all names, in the Secret that pods mount.
func TestIssuedTLS(t *testing.T) {
	r := of(t, "gateway")
	found := all[*certmanager.Certificate](r)
	if len(found) != 1 {
		t.Fatalf("%d Certificates, want one", len(found))
	}
	spec := found[0].Spec
	if by := spec.IssuerRef; by.Name != "internal" || by.Kind != "ClusterIssuer" || by.Group != "cert-manager.io" {
		t.Errorf("it is issued by %v", by)
	}
	if s := volume(t, r.deployment(t).Spec.Template.Spec, "peer-tls").Secret.SecretName; s != spec.SecretName {
		t.Errorf("pods have %s, and it is in %s", s, spec.SecretName)
	}
	peers := r.config(t)["replicas"].(map[string]any)["tls"].(map[string]any)
	for _, name := range []string{"release-mcpbridge.tools.svc", "mcp.example.com", peers["server_name"].(string)} {
		if !slices.Contains(spec.DNSNames, name) {
			t.Errorf("it is for %q, want %s", spec.DNSNames, name)
		}
	}
	if !slices.Contains(spec.Usages, certmanager.UsageServerAuth) || !slices.Contains(spec.Usages, certmanager.UsageClientAuth) {
		t.Errorf("it is for %q", spec.Usages)
	}
}
