// Package certs reads certificates, private keys and authorities from PEM files, for
// connections to clients and to servers, and rereads them when they were replaced.
//
// Files are reread during a TLS handshake, at most once a second: there is no goroutine,
// and a file that nobody needs is not read. What can't be used, such as a certificate
// whose key has not been replaced yet, is reported once, and what was read before stays
// in use.
package certs
