//go:build linux

package chart

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const folder = "../../deploy/helm/mcpbridge"

// valuesFiles returns the files below ci by the names of their cases.
func valuesFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(folder + "/ci/*-values.yaml")
	if err != nil || len(paths) < 6 {
		t.Fatalf("values below %s/ci = %q, %v", folder, paths, err)
	}
	files := make(map[string]string)
	for _, p := range paths {
		files[strings.TrimSuffix(filepath.Base(p), "-values.yaml")] = p
	}
	return files
}

func readValues(t *testing.T, path string) map[string]any {
	t.Helper()
	return valuesOf(t, readFile(t, path))
}

func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := common.ReadValues([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return values
}

func load(t *testing.T) *v2.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installed is how the chart is used.
var installed = common.ReleaseOptions{Name: "release", Namespace: "tools", Revision: 1, IsInstall: true}

// render is helm template: the files of the chart for these values, by their names.
func render(t *testing.T, e engine.Engine, values map[string]any) (map[string]string, error) {
	t.Helper()
	c := load(t)
	all, err := commonutil.ToRenderValues(c, values, installed, common.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	files, err := e.RenderWithContext(t.Context(), c, all)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, ".tpl") })
	return files, err
}

// rendered fails over values that are not there, too, which helm template would not.
func rendered(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	files, err := render(t, engine.Engine{Strict: true}, values)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// helm lint --strict finds nothing, with the defaults and with each of the values.
func TestLint(t *testing.T) {
	cases := map[string]map[string]any{"defaults": {}}
	for name, path := range valuesFiles(t) {
		cases[name] = readValues(t, path)
	}
	for name, values := range cases {
		for _, m := range lint.RunAll(folder, values, "tools").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// The values that a mistake concerns are named, before anything is installed.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{`{}`, "set config.auth"},
		{`{config: {servers: {a: {url: "https://a", auth: none}, b: {url: "https://b"}}}}`, "set config.auth"},
		{`{config: {listen: "127.0.0.1:1", allow_anonymous: true}}`, "config.listen is set by the chart"},
		{`{config: {replicas: {}, allow_anonymous: true}}`, "config.replicas is set by the chart"},
		{`{config: {allow_anonymous: true}, engine: {kind: none}}`, "set replicaCount to 1"},
		{`{config: {allow_anonymous: true}, engine: {kind: url}}`, "requires engine.url"},
		{`{config: {allow_anonymous: true}, engine: {url: "redis://r"}}`, "set engine.kind to url"},
		{`{config: {allow_anonymous: true}, engine: {kind: url, url: "http://r"}}`, "url"},
		{`{config: {allow_anonymous: true}, engine: {kind: url, url: "rediss://r", clientCertificate: true}}`, "requires engine.tlsSecret"},
		{`{config: {allow_anonymous: true}, tls: {clientAuth: require}}`, "requires tls.secret"},
		{`{config: {allow_anonymous: true}, tls: {clientAuth: require, generate: true}}`, "requires tls.secret"},
		{`{config: {allow_anonymous: true}, tls: {issuer: {name: a}, generate: true}}`, "exclude each other"},
		{`{config: {allow_anonymous: true}, tls: {for: []}}`, "for"},
		{`{config: {allow_anonymous: true}, ingress: {enabled: true}}`, "requires ingress.hosts"},
		{`{config: {allow_anonymous: true}, ingress: {enabled: true, hosts: ["https://a"]}}`, "hosts"},
		{`{config: {allow_anonymous: true}, httpRoute: {enabled: true, hostnames: [a]}}`, "requires httpRoute.parentRefs"},
		{`{config: {allow_anonymous: true}, httpRoute: {enabled: true, parentRefs: [{name: a}]}}`, "requires httpRoute.hostnames"},
		{`{config: {allow_anonymous: true}, replicaCount: 1, engine: {kind: none}, autoscaling: {enabled: true}}`, "set autoscaling.enabled to false"},
		{`{config: {allow_anonymous: true}, autoscaling: {enabled: true, maxReplicas: 2}}`, "more than autoscaling.maxReplicas"},
		{`{config: {allow_anonymous: true}, extraVolumes: [{name: state}]}`, "a volume state itself"},
		{`{config: {allow_anonymous: true}, tls: {generate: true}, extraVolumes: [{name: peer-tls}]}`, "a volume peer-tls itself"},
		{`{config: {allow_anonymous: true}, extraContainers: [{name: mcpbridge}]}`, "a container mcpbridge itself"},
		{`{config: {allow_anonymous: true}, extraContainers: [{image: a}]}`, "name"},
		{`{config: {allow_anonymous: true}, clusterDomain: ""}`, "clusterDomain"},
		{`{config: {allow_anonymous: true}, replicas: 3}`, "replicas"},
		{`{config: {allow_anonymous: true}, replicaCount: 0}`, "replicaCount"},
		{`{config: {allow_anonymous: true}, nats: {replicas: 2}}`, "replicas"},
		{`{config: {allow_anonymous: true}, peer: {keys: []}}`, "keys"},
		{`{config: {allow_anonymous: true}, drainSeconds: 10s}`, "drainSeconds"},
	} {
		if _, err := render(t, engine.Engine{}, valuesOf(t, tt.values)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %v, want an error that says %s", tt.values, err, tt.want)
		}
	}
}

// Each value of the chart is set by one of the files below ci, and is in the schema.
func TestValuesAreTried(t *testing.T) {
	tried := make(map[string]bool)
	for _, path := range valuesFiles(t) {
		for _, key := range leaves("", readValues(t, path)) {
			tried[key] = true
		}
	}
	for _, key := range leaves("", load(t).Values) {
		given := func(t string) bool { return t == key || strings.HasPrefix(t, key+".") }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(tried)), given) {
			t.Errorf("no file below ci sets %s", key)
		}
	}
}

// leaves returns the paths of what is no object, or an empty one.
func leaves(prefix string, values map[string]any) (paths []string) {
	for key, v := range values {
		if below, ok := v.(map[string]any); ok && len(below) > 0 {
			paths = append(paths, leaves(prefix+key+".", below)...)
			continue
		}
		paths = append(paths, prefix+key)
	}
	return paths
}
