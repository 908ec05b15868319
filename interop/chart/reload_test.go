//go:build linux

package chart

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// restarts reports whether the pods of a release are replaced when its values change.
func restarts(t *testing.T, before, after string) bool {
	t.Helper()
	var templates, configs [2]string
	for i, text := range []string{before, after} {
		values := valuesOf(t, text)
		values["existingSecret"] = "mcpbridge-keys"
		r := newRelease(t, values)
		template := r.deployment(t).Spec.Template
		templates[i], configs[i] = template.String(), named[*corev1.ConfigMap](r, r.deployment(t).Name).Data["config.yaml"]
	}
	if configs[0] == configs[1] {
		t.Errorf("%s and %s make the same configuration", before, after)
	}
	return templates[0] != templates[1]
}

// What mcpbridge reloads restarts no pod, and what counts after a restart does.
func TestRestarts(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		want          bool
	}{
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true, servers: {docs: {url: "https://a"}}}}`, false},
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true, limits: {body: 1MiB}, log: {level: debug}}}`, false},
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true, limits: {metric_tools: 1}}}`, true},
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true, log: {access: json}}}`, true},
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true, admin_debug: true}}`, true},
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true}, engine: {prefix: b}}`, true},
		{`{config: {allow_anonymous: true}}`, `{config: {allow_anonymous: true}, peer: {keys: [next, peer-key]}}`, false},
	} {
		if got := restarts(t, tt.before, tt.after); got != tt.want {
			t.Errorf("from %s to %s restarts: %v, want %v", tt.before, tt.after, got, tt.want)
		}
	}
}

// The chart and the program name the same keys as those that apply at once.
func TestLiveKeys(t *testing.T) {
	source, err := os.ReadFile("../../cmd/mcpbridge/internal/reload/restart.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "var liveKeys = ")
	text, _, _ = strings.Cut(text, "\n}\n")
	program := map[string]bool{"servers": true, "groups": true} // which are compared one by one
	for _, m := range regexp.MustCompile(`"([a-z_.]+)": true`).FindAllStringSubmatch(text, -1) {
		program[m[1]] = true
	}
	for _, key := range []string{"limits", "log.level", "replicas.keys"} { // parts of which count after a restart
		delete(program, key)
	}
	template, err := os.ReadFile(folder + "/templates/_config.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(template), `{{- define "mcpbridge.live" -}}`)
	names, _, _ = strings.Cut(names, "{{- end")
	got := strings.Fields(names)
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(program)); !slices.Equal(got, want) {
		t.Errorf("the chart restarts for all but\n%q, the program for all but\n%q", got, want)
	}
}
