//go:build linux

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func contains(t *testing.T, o runtime.Object, text string) bool {
	t.Helper()
	out, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(out, []byte(text))
}

// config returns the configuration of mcpbridge.
func (r *release) config(t *testing.T) map[string]any {
	t.Helper()
	var config map[string]any
	text := named[*corev1.ConfigMap](r, r.deployment(t).Name).Data["config.yaml"]
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// A laid is a container on this machine: a folder as its root, and what it runs with.
type laid struct {
	root string
	user *syscall.Credential
	env  []string
	args []string
}

// newLaid makes a root that has nothing but the program.
func newLaid(t *testing.T, user *syscall.Credential) *laid {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a root of its own for a process needs root")
	}
	l := &laid{root: t.TempDir(), user: user}
	for dir := l.root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755)) // the container's root is everybody's
	}
	must(t, os.MkdirAll(filepath.Join(l.root, "usr/bin"), 0o755))
	must(t, os.Link(bridge, filepath.Join(l.root, "usr/bin/mcpbridge")))
	return l
}

// layOut makes the file system of a replica as a kubelet does.
func layOut(t *testing.T, r *release, ip string) *laid {
	t.Helper()
	spec := r.deployment(t).Spec.Template.Spec
	c, s := spec.Containers[0], spec.SecurityContext
	group := uint32(*s.FSGroup)
	l := newLaid(t, &syscall.Credential{Uid: uint32(*s.RunAsUser), Gid: uint32(*s.RunAsGroup), Groups: []uint32{group}})
	l.args, l.env = c.Args, environment(t, r, c, ip)
	for _, m := range c.VolumeMounts {
		l.mount(t, r, volume(t, spec, m.Name), m.MountPath, int(group))
	}
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func volume(t *testing.T, spec corev1.PodSpec, name string) corev1.Volume {
	t.Helper()
	for _, v := range spec.Volumes {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("the volume %s is mounted, and not there", name)
	return corev1.Volume{}
}

// mount lays a volume out, with the modes and the group that Kubernetes gives its files.
func (l *laid) mount(t *testing.T, r *release, v corev1.Volume, path string, group int) {
	t.Helper()
	at := filepath.Join(l.root, path)
	must(t, os.MkdirAll(at, 0o755))
	switch {
	case v.ConfigMap != nil:
		m := named[*corev1.ConfigMap](r, v.ConfigMap.Name)
		if m == nil {
			t.Fatalf("no ConfigMap %s", v.ConfigMap.Name)
		}
		files := make(map[string][]byte)
		for name, text := range m.Data {
			files[name] = []byte(text)
		}
		project(t, at, files, *v.ConfigMap.DefaultMode, group)
	case v.Secret != nil:
		project(t, at, secret(t, r, v.Secret.SecretName), *v.Secret.DefaultMode, group)
	default:
		must(t, os.Chown(at, 0, group))
		must(t, os.Chmod(at, 0o2775)) // Go's modes don't have setgid there
	}
}

// project writes files as a kubelet does: links into a folder that is replaced as a whole.
func project(t *testing.T, at string, files map[string][]byte, mode int32, group int) {
	t.Helper()
	data, err := os.MkdirTemp(at, "..")
	must(t, err)
	must(t, os.Chmod(data, 0o755))
	for name, text := range files {
		path := filepath.Join(data, name)
		must(t, os.WriteFile(path, text, os.FileMode(mode)))
		must(t, os.Chown(path, 0, group))
		if _, err := os.Lstat(filepath.Join(at, name)); errors.Is(err, os.ErrNotExist) {
			must(t, os.Symlink("..data/"+name, filepath.Join(at, name)))
		}
	}
	must(t, os.Symlink(filepath.Base(data), filepath.Join(at, "..next")))
	must(t, os.Rename(filepath.Join(at, "..next"), filepath.Join(at, "..data")))
}

// secret returns a Secret of the release, or one that the values name.
func secret(t *testing.T, r *release, name string) map[string][]byte {
	t.Helper()
	if s := named[*corev1.Secret](r, name); s != nil {
		return s.Data
	}
	if files := given(t)[name]; files != nil {
		return files
	}
	t.Fatalf("no Secret %s", name)
	return nil
}

// environment is that of a container: variables of its own, and of Secrets.
func environment(t *testing.T, r *release, c corev1.Container, ip string) (env []string) {
	t.Helper()
	for _, from := range c.EnvFrom {
		for name, v := range secret(t, r, from.SecretRef.Name) {
			env = append(env, name+"="+string(v))
		}
	}
	values := make(map[string]string)
	for _, e := range c.Env {
		v := e.Value
		for name, known := range values {
			v = strings.ReplaceAll(v, "$("+name+")", known)
		}
		switch from := e.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			v = string(secret(t, r, from.SecretKeyRef.Name)[from.SecretKeyRef.Key])
		case from.FieldRef.FieldPath == "status.podIP":
			v = ip
		case from.FieldRef.FieldPath == "metadata.name":
			v = "nats-0"
		default:
			t.Fatalf("%s is %v", e.Name, from)
		}
		values[e.Name] = v
		env = append(env, e.Name+"="+v)
	}
	return append(env, "HOME=/var/lib/mcpbridge")
}

// command is a command of mcpbridge in the container.
func (l *laid) command(argv ...string) *exec.Cmd {
	return l.run("/usr/bin/mcpbridge", argv...)
}

// run is a program in the container.
func (l *laid) run(path string, argv ...string) *exec.Cmd {
	cmd := exec.Command(path, argv...)
	cmd.Path, cmd.Err = path, nil // which is not this machine's
	cmd.Dir, cmd.Env = "/var/lib/mcpbridge", l.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: l.root, Credential: l.user}
	return cmd
}

// plain are the warnings about a release without TLS: Prometheus sends its token in the
// clear, and replicas forward and ask the engine in the clear.
var plain = []string{"admin_token: can be read on its way to admin", "replicas.peer: can be reached from other machines without TLS", "replicas.engine: is beyond this machine, and does not insist on TLS"}

// check has mcpbridge check its configuration, which may warn of nothing else.
func (l *laid) check(t *testing.T) error {
	t.Helper()
	out, err := l.command("check", l.args[len(l.args)-1]).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "warning") && !slices.ContainsFunc(plain, func(known string) bool { return strings.Contains(line, known) }) {
			err = errors.Join(err, errors.New(line))
		}
	}
	return err
}
