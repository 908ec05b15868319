// Command packaging makes the packages of npm and PyPI out of the binaries that goreleaser
// has built: for each platform one that is just the binary, and for npm one on top of
// them. Neither runs anything when it is installed.
//
//	go run ./internal/dev/packaging -dist dist
//
// writes dist/npm/*.tgz and dist/wheels/*.whl. The same binaries give the same bytes.
package main
