package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The configurations that packages, images and deploy come with can be used as they are.
func TestShippedConfigurations(t *testing.T) {
	for _, tt := range []struct {
		file    string
		environ []string
		code    int
	}{
		{"packaging/systemd/config.yaml", nil, 0},
		{"packaging/image/config.yaml", []string{"MCPBRIDGE_ALLOW_ANONYMOUS=true"}, 0},
		{"packaging/image/config.yaml", nil, exitUsage}, // nothing says who clients are
		{"deploy/mcpbridge.yaml", nil, 0},
	} {
		text, err := os.ReadFile(filepath.Join("../..", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		path := configFile(t, strings.ReplaceAll(string(text), "/run/secrets/admin_token", token))
		if got := runCommand(t.Context(), tt.environ, "check", path); got.code != tt.code {
			t.Errorf("check of %s with %q = %+v, want the code %d", tt.file, tt.environ, got, tt.code)
		}
	}
}

// What compose mounts is there, and what it asks of mcpbridge is what the image has.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile("../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image   string
			Volumes []string
			Secrets []string
		}
		Secrets, Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	if len(compose.Services) != 3 {
		t.Errorf("%d services, want mcpbridge, Prometheus and Grafana", len(compose.Services))
	}
	for name, s := range compose.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := compose.Volumes[from]
			if _, err := os.Stat(filepath.Join("../../deploy", from)); err != nil && !named {
				t.Errorf("%s mounts %s, which is not there", name, v)
			}
		}
		for _, secret := range s.Secrets {
			if compose.Secrets[secret] == nil {
				t.Errorf("%s has the secret %s, which is not defined", name, secret)
			}
		}
		if !strings.Contains(s.Image, ":") {
			t.Errorf("%s has the image %s, without a tag", name, s.Image)
		}
	}
}
