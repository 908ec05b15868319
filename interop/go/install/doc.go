// Package install asks whether what people install works: the packages of npm and PyPI, and
// with DIST, which names the folder that packaging/build has filled, all that a release has:
// archives, deb, rpm, the file system of the image, the bills of materials, and go install.
//
// npm installs from a registry of this package's own, with the packages as they would be
// published. The deb, the rpm and the unit are tried over a copy of this machine's files,
// which is thrown away.
package install
