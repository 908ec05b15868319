// Package certs reads certificates, private keys and authorities from PEM files, for
// connections to clients and to servers, and rereads replaced files. It also reads private keys
// that sign tokens.
//
// Files are reread during a TLS handshake, at most once a second: there is no goroutine,
// and unused files are not read. Files that can't be used, such as a certificate whose key
// has not been replaced yet, are reported once, and the last usable ones stay in use.
package certs
