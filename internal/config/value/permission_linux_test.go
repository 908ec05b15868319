package value

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a container's engine has put there, with a mode that nobody chose, is not warned of.
func TestOthersReadSecret(t *testing.T) {
	const ext4, overlay, noSUID = 0xef53, 0x794c7630, 2
	for _, tt := range []struct {
		name        string
		kind, flags uint64
		want        bool
	}{
		{"a disk", ext4, noSUID, false}, {"a container's own layer", overlay, 0, false},
		{"a disk that can't be written to", ext4, noSUID | readOnly, true}, {"memory", tmpfsMagic, noSUID, true}, {"memory, sign extended", 0xffffffff<<32 | ramfsMagic, 0, true},
	} {
		if got := isOwnMount(tt.kind, tt.flags); got != tt.want {
			t.Errorf("%s: isOwnMount(%#x, %d) = %v, want %v", tt.name, tt.kind, tt.flags, got, tt.want)
		}
	}
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := OthersReadSecret(path); got == isMadeForOne(path) {
		t.Errorf("OthersReadSecret of a file of a disk, or in memory: %v", got)
	}
	secretFolders = append(secretFolders, filepath.Dir(path)+"/")
	defer func() { secretFolders = secretFolders[:len(secretFolders)-1] }()
	if OthersReadSecret(path) {
		t.Errorf("OthersReadSecret(below one of %s) = true", strings.Join(secretFolders, " "))
	}
	shm, err := os.CreateTemp("/dev/shm", "mcpbridge")
	if err != nil {
		t.Skip("there is no /dev/shm")
	}
	defer os.Remove(shm.Name())
	defer shm.Close()
	if err := shm.Chmod(0o644); err != nil {
		t.Fatal(err)
	}
	if !OthersRead(shm.Name()) || OthersReadSecret(shm.Name()) {
		t.Errorf("a file in memory: OthersRead %v, OthersReadSecret %v, want true and false", OthersRead(shm.Name()), OthersReadSecret(shm.Name()))
	}
}
