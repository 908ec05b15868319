package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/hostfile"
)

// What is kept of a host's file whose servers are one entry, in a folder of its own.
const (
	movedFile  = "servers.yaml" // the servers, as mcpbridge reads them
	beforeName = "before"       // the host's file without the entry, when servers were moved the last time; with its extension
	recordFile = "record.json"
	private    = 0o600 // there are secrets in all of them
)

// A Group makes one entry of the servers of a host's file, or puts them back.
type Group struct {
	hostfile.Group // whose File is set by [OpenGroup]
	// Convert returns a file of mcpbridge with servers of data, a host's file, and for each of
	// them, by its name in the host's file, what is different there. Names of tools are at most
	// nameMax long.
	Convert func(data []byte, servers []string, nameMax int) (text []byte, notes map[string]string, err error)
	// Check returns why mcpbridge can't serve what Convert has returned, and why it would leave a
	// server out; "" if that is not so.
	Check func(text []byte) (wrong, leftOut string, err error)

	dir  string // the folder
	file *File
	last record
	// before is the host's file before, and text that of the servers; nil if there is none.
	before, text []byte
}

func (g *Group) beforeFile() string { return beforeName + g.Host.Extension() }

// A record says what was moved.
type record struct {
	File    string   `json:"file"`    // the host's
	Servers []string `json:"servers"` // that were moved, by their names there
	// Sums are those of the file of the servers, as it was written: the last one, and the one
	// before, if writing was interrupted.
	Sums []string `json:"sums"`
}

// OpenGroup reads what was moved out of a host's file before, if anything was. state is the folder
// for what outlives the process.
func OpenGroup(g *Group, f *File, state string) error {
	path, err := filepath.Abs(f.path)
	if err == nil {
		g.Path, err = filepath.Abs(f.given)
	}
	if err != nil {
		return fmt.Errorf("finding the host's file: %w", err)
	}
	g.file = f
	g.dir = g.folder(filepath.Join(state, "hosts", g.Host.Name+"-"+sum([]byte(path))[:8]))
	g.File = filepath.Join(g.dir, movedFile)
	g.Entry = g.EntryName(f.data)
	said, err := g.read(recordFile)
	if err != nil || said == nil {
		return err
	}
	if err := json.Unmarshal(said, &g.last); err != nil {
		return fmt.Errorf("reading what was moved: %s: %v", filepath.Join(g.dir, recordFile), err)
	}
	if g.before, err = g.read(g.beforeFile()); err == nil {
		g.text, err = g.read(movedFile)
	}
	return err
}

// folder returns where the servers were moved to, if the host's file says so; the state folder may
// have been another one then. Otherwise it is dir.
func (g *Group) folder(dir string) string {
	for _, file := range g.Files(g.file.data) {
		if there := filepath.Dir(file); filepath.Base(file) == movedFile && filepath.Base(there) == filepath.Base(dir) && filepath.IsAbs(there) {
			return there
		}
	}
	return dir
}

// read reads a file of the folder; nil if there is none.
func (g *Group) read(name string) ([]byte, error) {
	data, err := value.ReadFile(filepath.Join(g.dir, name), value.MaxFile, false, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was moved: %w", err)
	}
	return data, nil
}

// plain returns the host's file without the one entry, what became of its servers, and which they
// are.
func (g *Group) plain() (data []byte, changes []hostfile.Change, servers []string, err error) {
	has := g.Has(g.file.data)
	switch {
	case g.before == nil && has:
		return nil, nil, nil, fmt.Errorf("it has the entry that runs %s, but what it had before is not in that folder any more; write the servers of that file into it by hand, and remove the entry", g.File)
	case g.before == nil:
		return g.file.data, nil, nil, nil
	}
	data, changes, err = g.Restore(g.file.data, g.before, g.last.Servers)
	if errors.Is(err, hostfile.ErrNoEntry) {
		return nil, nil, nil, fmt.Errorf("the entry that runs %s is not in it any more, and its servers are nowhere else: write it again, as \"args\": [\"wrap\", \"--all\", %q], or copy the servers from %s and remove that folder", g.File, g.File, filepath.Join(g.dir, g.beforeFile()))
	}
	if !has { // they are back already
		return data, nil, nil, err
	}
	return data, changes, g.last.Servers, err
}

// Gather works out what to write to make one entry of the servers of a host's file, and of those
// that it has had since.
func (g *Group) Gather() (c Change, err error) {
	if advice := g.Host.Foreign(g.file.data); advice != "" {
		return c, errors.New(advice)
	}
	plain, restored, old, err := g.plain()
	if err != nil {
		return c, err
	}
	stay, found, err := g.Stay(plain)
	if err != nil {
		return c, err
	}
	nameMax := g.Host.NameMax(g.Entry)
	servers := slices.Clone(old)
	for _, name := range found {
		if slices.Contains(old, name) {
			continue
		}
		why, err := g.whyNot(plain, name, servers, nameMax)
		if err != nil {
			return c, err
		}
		if why != "" {
			stay = append(stay, hostfile.Change{Server: name, Why: why})
			continue
		}
		servers = append(servers, name)
	}
	c.Data, c.outcomes = g.file.data, stay
	for _, name := range old {
		c.outcomes = append(c.outcomes, hostfile.Change{Server: name, Done: "moved before"})
	}
	done := len(old) == 0 || g.text != nil && !slices.ContainsFunc(restored, func(r hostfile.Change) bool { return !r.Changed })
	if len(servers) == len(old) && done {
		return c, nil
	}
	return c, g.move(&c, plain, servers, servers[len(old):], nameMax)
}

// whyNot returns why a server can't be moved to others; "" if it can. What is wrong with those now
// is not its fault.
func (g *Group) whyNot(plain []byte, name string, others []string, nameMax int) (string, error) {
	text, _, err := g.Convert(plain, []string{name}, nameMax)
	if err != nil {
		return "", err
	}
	if wrong, _, err := g.Check(text); wrong != "" || err != nil {
		return wrong, err
	}
	if text, _, err = g.Convert(plain, append(slices.Clone(others), name), nameMax); err != nil {
		return "", err
	}
	_, leftOut, err := g.Check(text)
	return leftOut, err
}

// move adds to a change that servers are moved, of which some are fresh: they were not before.
func (g *Group) move(c *Change, plain []byte, servers, fresh []string, nameMax int) error {
	text, notes, err := g.Convert(plain, servers, nameMax)
	if err != nil {
		return err
	}
	if c.Data, err = g.Install(plain, servers); err != nil {
		return err
	}
	if g.Has(g.file.data) {
		c.Data = g.Carry(c.Data, g.file.data)
	}
	for _, name := range fresh {
		c.outcomes = append(c.outcomes, hostfile.Change{Server: name, Changed: true, Why: notes[name], Done: "moved"})
	}
	m := &moved{Group: g, plain: plain, text: text, nameMax: nameMax, record: record{g.Path, servers, []string{sum(text)}}}
	if g.edited() {
		if m.text, err = hostfile.AddServers(g.text, text); err != nil {
			return fmt.Errorf("%s was changed by hand, and can't be read: %w; correct it", g.File, err)
		}
		m.record.Sums = g.last.Sums
	} else if g.text != nil {
		m.record.Sums = append(m.record.Sums, sum(g.text))
	}
	c.moved, c.changed = m, true
	return nil
}

// edited reports whether the file of the servers is not as it was written.
func (g *Group) edited() bool {
	return g.text != nil && !slices.Contains(g.last.Sums, sum(g.text))
}

// sum returns a digest of a text.
func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// Scatter works out what to write to take mcpbridge out of a host's file: the servers that were
// moved are put back, and others don't run under wrap any more.
func (g *Group) Scatter() (Change, error) {
	plain, changes, servers, err := g.plain()
	if err != nil {
		return Change{}, err
	}
	for _, name := range g.Only {
		if slices.Contains(servers, name) {
			return Change{}, fmt.Errorf("%s was moved to %s with others; without names, --uninstall puts all of them back", name, g.File)
		}
	}
	if len(g.Only) > 0 {
		return Unwrap(g.Edit, g.file)
	}
	without := *g.file
	without.data = plain
	c, err := Unwrap(g.Edit, &without)
	if err != nil {
		return c, err
	}
	for _, o := range c.outcomes {
		if !slices.Contains(servers, o.Server) {
			changes = append(changes, o)
		}
	}
	c.outcomes = changes
	c.changed = !bytes.Equal(c.Data, g.file.data)
	if _, err := os.Stat(g.dir); err == nil {
		c.moved = &moved{Group: g, back: true}
		c.changed = true // the folder is removed
	}
	return c, nil
}

// A moved is what is written beside a host's file if servers are moved out of it or back.
type moved struct {
	*Group
	back bool // what was written is removed, instead

	plain, text []byte
	nameMax     int
	record      record
	kept        string // where the servers are that were changed by hand
}

// A content is what a file of the folder is to have.
type content struct {
	name string
	data []byte
}

// contents returns what is written beside the host's file, in this order: each way that it may be
// interrupted, the files fit each other.
func (m *moved) contents() ([]content, error) {
	said, err := json.MarshalIndent(m.record, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing down what is moved: %v", err)
	}
	return []content{{m.beforeFile(), m.plain}, {recordFile, append(said, '\n')}, {movedFile, m.text}}, nil
}

// preview shows what the file of the servers would get, without secrets.
func (m *moved) preview(w io.Writer, host *hostfile.Host) error {
	if m == nil || m.back {
		return nil
	}
	masked := host.Masked(m.plain)
	after, _, err := m.Convert(masked, m.record.Servers, m.nameMax)
	if err != nil || m.Group.text == nil {
		return errors.Join(err, output.Bytes(w, diffOf("/dev/null", m.File, nil, after)))
	}
	before, _, err := m.Convert(masked, m.last.Servers, m.nameMax)
	return errors.Join(err, output.Bytes(w, diff(m.File, before, after)))
}

// write writes what the one entry needs, before the host's file has it: whatever happens between,
// the servers are in one of them.
func (m *moved) write(f *File) error {
	if m == nil || m.back {
		return nil
	}
	all, err := m.contents()
	if err != nil {
		return err
	}
	if err := f.makeDir(m.dir); err != nil {
		return err
	}
	for _, c := range all {
		if err := f.write(filepath.Join(m.dir, c.name), c.data, private); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(m.dir, c.name), err)
		}
	}
	return nil
}

// undo removes what was written for an entry that the host's file has not got.
func (m *moved) undo() error {
	if m == nil || m.back || m.before != nil {
		return nil
	}
	return os.RemoveAll(m.dir)
}

// clear removes what was moved once it is back. Servers that were changed by hand are kept.
func (m *moved) clear() error {
	if m == nil || !m.back {
		return nil
	}
	if m.edited() {
		kept := m.dir + "-" + sum(m.text)[:8] + filepath.Ext(movedFile)
		if err := os.Rename(m.File, kept); err != nil {
			return fmt.Errorf("keeping the servers that were changed: %w", err)
		}
		m.kept = kept
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("removing what was moved: %w", err)
	}
	return nil
}

// say tells the user where the servers are.
func (m *moved) say(w io.Writer, host *hostfile.Host) {
	switch {
	case m == nil:
	case m.kept != "":
		_, _ = output.Printf(w, "\nThe file that mcpbridge had them in was changed since, which is not in %s's file: it is kept as %s.\n", host.Title, m.kept)
	case m.back:
		_, _ = output.Printf(w, "\nWhat mcpbridge kept of them, in %s, was removed.\n", m.dir)
	default:
		_, _ = output.Printf(w, "\nThey are in %s, which only you can read.\nAs it was: %s\nNames of their tools begin with the server's, as in NAME__tool. What %s may call without asking has to be allowed again.\n", m.File, filepath.Join(m.dir, m.beforeFile()), host.Title)
	}
}
