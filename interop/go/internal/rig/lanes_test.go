package rig

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lists returns the lists of the Makefile that say what runs beside what.
func lists(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^((?:ALONE|BESIDE|SOAK)\w*) := (.*)$`).FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// TestLanes holds that make interop and make trunk run each test once, but for those that make soak
// alone runs: each package is in one list, and one that has tests beside which nothing runs is in the
// list of those.
func TestLanes(t *testing.T) {
	l := lists(t)
	alone := regexp.MustCompile(l["ALONE"])
	beside := append(strings.Fields(l["BESIDE_INTEROP"]), strings.Fields(l["BESIDE_TRUNK"])...)
	whole := strings.Fields(l["ALONE_WHOLE"])
	soak := strings.Fields(l["SOAK_ONLY"])
	inPart := append(strings.Fields(l["ALONE_IN_INTEROP"]), strings.Fields(l["ALONE_IN_TRUNK"])...)
	tests := testsOf(t)
	for pkg, names := range tests {
		listed := 0
		for _, one := range slices.Concat(beside, whole, soak) {
			if one == pkg || strings.HasSuffix(one, "/...") && strings.HasPrefix(pkg, strings.TrimSuffix(one, "...")) {
				listed++
			}
		}
		if listed != 1 {
			t.Errorf("%s is in %d lists of the Makefile, want 1", pkg, listed)
		}
		has := slices.ContainsFunc(names, alone.MatchString)
		if want := has && !slices.Contains(whole, pkg); slices.Contains(inPart, pkg) != want {
			t.Errorf("%s has tests beside which nothing runs: %v, and the Makefile has it in ALONE_IN_…: %v", pkg, has, !want)
		}
	}
	for _, pkg := range inPart {
		if trunk := slices.Contains(strings.Fields(l["BESIDE_TRUNK"]), pkg); trunk != slices.Contains(strings.Fields(l["ALONE_IN_TRUNK"]), pkg) {
			t.Errorf("%s has its two parts in different targets", pkg)
		}
	}
	if len(tests) < 15 {
		t.Errorf("%d packages were found, want those of interop/go", len(tests))
	}
}

// testsOf returns the names of the tests of interop/go, by package.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..")
	tests := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		pkg := "./" + dir
		if dir == "." {
			pkg = dir
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(text), -1) {
			tests[pkg] = append(tests[pkg], m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
