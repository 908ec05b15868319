package main

import (
	"fmt"
	"os"
)

// A platform is one for which there is a binary, as each registry calls it.
type platform struct {
	goos, goarch string
	npmOS        string // process.platform of Node.js
	npmCPU       string // process.arch of Node.js
	tags         string // platform tags of wheels, in the order of the alphabet
}

// platforms are those of .goreleaser.yaml. The binaries are linked statically, so that
// those of Linux run with any C library. Go 1.26 needs macOS 12.
var platforms = []platform{
	{"linux", "amd64", "linux", "x64", "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64"},
	{"linux", "arm64", "linux", "arm64", "manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64"},
	{"darwin", "amd64", "darwin", "x64", "macosx_12_0_x86_64"},
	{"darwin", "arm64", "darwin", "arm64", "macosx_12_0_arm64"},
	{"windows", "amd64", "win32", "x64", "win_amd64"},
	{"windows", "arm64", "win32", "arm64", "win_arm64"},
}

// npmName is the name of the package that has the binary.
func (p *platform) npmName() string { return "@mcpbridge/" + p.npmOS + "-" + p.npmCPU }

// file is what the binary is called.
func (p *platform) file() string {
	if p.goos == "windows" {
		return "mcpbridge.exe"
	}
	return "mcpbridge"
}

// add reads the binary of a platform.
func (r *release) add(goos, goarch, path string) (err error) {
	for _, p := range platforms {
		if p.goos == goos && p.goarch == goarch {
			r.binaries[p], err = os.ReadFile(path)
			return err
		}
	}
	return fmt.Errorf("no registry has a name for %s/%s; add one to platforms", goos, goarch)
}
