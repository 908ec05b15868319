//go:build linux

package install

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/process"
	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// An image is what a Containerfile makes: a root, and how it is run.
type image struct {
	root                     string
	user                     string // as in 65532:65532
	dir                      string
	env, entrypoint, command []string
	health                   []string
}

// context is where COPY finds what is not in the repository.
var context = map[string]string{
	"$TARGETPLATFORM/mcpbridge":          "", // set by assemble
	"/etc/ssl/certs/ca-certificates.crt": "/etc/ssl/certs/ca-certificates.crt",
	"/uv":                                "../../../bin/uv/uv",
	"/uvx":                               "../../../bin/uv/uvx",
}

// assemble does what a container engine would with the last stage of a Containerfile, as
// far as ours goes: COPY, RUN, and how it is run. base is a folder with what it is FROM;
// empty for scratch.
func assemble(t *testing.T, file, base string) *image {
	t.Helper()
	context["$TARGETPLATFORM/mcpbridge"] = releasedBinary(t)
	im := &image{root: t.TempDir()}
	text := read(t, file)
	stage, last, _ := strings.Cut(text[strings.LastIndex(text, "\nFROM ")+1:], "\n")
	if scratch := stage == "FROM scratch"; scratch != (base == "") {
		t.Fatalf("%s: the last stage is %s", file, stage)
	}
	if base != "" {
		run(t, nil, "cp", "-a", base+"/.", im.root)
	}
	for line := range strings.Lines(last) {
		im.instruct(t, strings.TrimSpace(line))
	}
	return im
}

// instruct carries out one instruction.
func (im *image) instruct(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "", "ARG", "EXPOSE":
	case "COPY":
		im.copy(t, strings.Fields(rest))
	case "RUN":
		run(t, nil, "chroot", im.root, "/bin/sh", "-c", rest)
	case "ENV":
		im.env = append(im.env, rest)
	case "USER":
		im.user = rest
	case "WORKDIR":
		im.dir = rest
	case "ENTRYPOINT":
		im.entrypoint = list(t, rest)
	case "CMD":
		im.command = list(t, rest)
	case "HEALTHCHECK":
		im.health = list(t, strings.TrimPrefix(rest, "CMD "))
	default:
		t.Fatalf("an instruction that this test does not know: %s", line)
	}
}

func list(t *testing.T, text string) (words []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return words
}

// copy copies a file or a folder, with its owner.
func (im *image) copy(t *testing.T, words []string) {
	t.Helper()
	owner := 0
	words = slices.DeleteFunc(words, func(w string) bool {
		if of, ok := strings.CutPrefix(w, "--chown="); ok {
			id, _, _ := strings.Cut(of, ":")
			owner, _ = strconv.Atoi(id) // a name would be 0, and the test fails at it
		}
		return strings.HasPrefix(w, "--")
	})
	to := words[len(words)-1]
	for _, from := range words[:len(words)-1] {
		at := filepath.Join(im.root, to)
		if strings.HasSuffix(to, "/") {
			at = filepath.Join(at, filepath.Base(from))
		}
		if context[from] != "" {
			from = context[from]
		} else {
			from = filepath.Join("../../..", from)
		}
		copyTree(t, from, at, owner)
	}
}

func copyTree(t *testing.T, from, to string, owner int) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if d.IsDir() {
			return errors.Join(os.MkdirAll(at, 0o755), os.Chown(at, owner, owner))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		return errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, content, info.Mode()), os.Chown(at, owner, owner))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// argv is how to run a program of the image as an engine would: as its user, as the first
// process, with nothing but its root, which is read-only but for the volume and /tmp.
func (im *image) argv(words ...string) []string {
	const script = `mount --make-rprivate / && mount --bind "$0" "$0" && mkdir -p "$0/proc" "$0/tmp" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" &&
		mount --bind "$0/var/lib/mcpbridge" "$0/var/lib/mcpbridge" && mount -o remount,bind,ro "$0" && root=$0 && user=$1 && dir=$2 && shift 2 && exec chroot --userspec="$user" "$root" "$@"`
	return append([]string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, im.root, im.user, im.dir}, words...)
}

// run runs a program of the image to its end, with only its environment and more.
func (im *image) run(env []string, words ...string) (string, error) {
	argv := im.argv(words...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH")}, im.env, env)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The image has what it needs and no more, runs as nobody with a root that can't be
// written, and its health check tells whether it is well.
func TestImage(t *testing.T) {
	version := release(t)
	im := assemble(t, "../../../packaging/image/Containerfile", "")
	if uid, _, _ := strings.Cut(im.user, ":"); uid == "0" || uid == "" {
		t.Errorf("the user is %q, want one without rights", im.user)
	}
	if out, err := im.run(nil, "/usr/bin/mcpbridge", "version"); err != nil || !strings.HasPrefix(out, "mcpbridge v"+version+" ") {
		t.Errorf("version = %v, %s", err, out)
	}
	// As it comes, its clients have to prove who they are, and nothing says how.
	out, err := im.run(nil, append(im.entrypoint, im.command...)...)
	if exitCode(err) != 2 || !strings.Contains(out, "allow_anonymous") {
		t.Errorf("serve without auth = %v, %s; want exit code 2 and what to do", err, out)
	}

	listen, admin, p := im.start(t)
	res, err := http.Get("http://" + listen + "/mcp/notebook")
	if err != nil || res.StatusCode == http.StatusForbidden {
		t.Errorf("GET of the endpoint = %v, %v", res, err)
	}
	if err == nil {
		_ = res.Body.Close()
	}
	if got := get(t, "http://"+admin+"/metrics"); !strings.Contains(got, `version="v`+version+`"} 1`) {
		t.Errorf("/metrics does not say which version runs: %s", got)
	}
	stopInner(t, p)
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// start serves what the image serves, on addresses of its own, and waits until its health
// check says that it is well, which it has not said before.
func (im *image) start(t *testing.T) (listen, admin string, p *process.Process) {
	t.Helper()
	listen, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	if admin, err = process.FreeAddr(); err != nil {
		t.Fatal(err)
	}
	env := []string{"MCPBRIDGE_LISTEN=" + listen, "MCPBRIDGE_ADMIN=" + admin}
	if out, err := im.run(env, im.health...); exitCode(err) != 1 {
		t.Errorf("the health check of what does not run = %v, %s", err, out)
	}
	p, err = process.Start("the image", slices.Concat(im.env, env), im.argv(append(im.entrypoint, im.command...)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	rig.Until(t, 2*time.Minute, "healthy", func() string {
		if out, err := im.run(env, im.health...); err != nil {
			return "the health check says " + out + p.Log()
		}
		return ""
	})
	return listen, admin, p
}

// stopInner tells the first process of a namespace to end, which unshare does not pass on.
func stopInner(t *testing.T, p *process.Process) {
	t.Helper()
	children := read(t, "/proc/"+strconv.Itoa(p.Pid())+"/task/"+strconv.Itoa(p.Pid())+"/children")
	inner, err := strconv.Atoi(strings.TrimSpace(children))
	if err == nil {
		err = syscall.Kill(inner, syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 2*time.Minute, "drained", func() string {
		if log := p.Log(); !strings.Contains(log, "stopped") {
			return "it says: " + log
		}
		return ""
	})
}

// The image for commands runs those of npm and PyPI, as a user without rights.
func TestCommandsImage(t *testing.T) {
	release(t)
	im := assemble(t, "../../../packaging/image/Containerfile.commands", "../../../bin/base")
	// This machine may reach registries by authorities of its own.
	copyTree(t, "/etc/ssl/certs/ca-certificates.crt", filepath.Join(im.root, "ca.pem"), 0)
	write(t, filepath.Join(im.root, "etc/mcpbridge/config.yaml"), `listen: 0.0.0.0:2526
allow_anonymous: true
servers:
  everything: {command: npx, args: [-y, "@modelcontextprotocol/server-everything@2026.8.31"], env: {NODE_EXTRA_CA_CERTS: /ca.pem}, timeouts: {connect: 2m}}
  clock: {command: uvx, args: [mcp-server-time==2026.10.19], env: {SSL_CERT_FILE: /ca.pem}, timeouts: {connect: 2m}}
`)
	listen, _, p := im.start(t)
	if got := run(t, nil, bridge(t), "call", "http://"+listen+"/mcp/everything", "echo", "message=hello"); !strings.Contains(got, "hello") {
		t.Errorf("echo of a command by npx = %s", got)
	}
	if got := run(t, nil, bridge(t), "call", "http://"+listen+"/mcp/clock", "get_current_time", "timezone=Etc/UTC"); !strings.Contains(got, "Etc/UTC") {
		t.Errorf("get_current_time of a command by uvx = %s", got)
	}
	stopInner(t, p)
}
