//go:build linux

package chart

import (
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// A cluster is one that has the objects of a release, for lookup.
type cluster struct{ *fake.FakeDynamicClient }

func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return c.Resource(version.WithResource(strings.ToLower(kind) + "s")), true, err
}

// upgraded is what helm upgrade makes of values where these objects are.
func upgraded(t *testing.T, values map[string]any, had ...runtime.Object) *release {
	t.Helper()
	c := load(t)
	all, err := commonutil.ToRenderValues(c, values, installed, common.DefaultCapabilities.Copy())
	must(t, err)
	files, err := engine.RenderWithClientProvider(c, all, cluster{fake.NewSimpleDynamicClient(scheme.Scheme, had...)})
	must(t, err)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, ".tpl") })
	return releaseOf(t, values, files)
}

// An upgrade keeps what the installation generated, and adds what is missing.
func TestUpgradeKeepsSecrets(t *testing.T) {
	had := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "release-mcpbridge", Namespace: "tools"},
		Data:       map[string][]byte{"peer-key": []byte("the one that replicas have"), "admin-token": []byte("of an admin"), "metrics-token": []byte("of a scraper")},
	}
	got := named[*corev1.Secret](upgraded(t, readValues(t, valuesFiles(t)["quick"]), had), had.Name).Data
	for key, want := range had.Data {
		if string(got[key]) != string(want) {
			t.Errorf("%s = %q, want %q", key, got[key], want)
		}
	}
	if len(got["nats-password"]) != 40 || len(got) != 4 {
		t.Errorf("the Secret has %d keys, and %d bytes for NATS", len(got), len(got["nats-password"]))
	}
}
