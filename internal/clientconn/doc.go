// Package clientconn listens for clients of HTTP, whose connections notice one that does not
// read, or is gone, and cost little per request.
package clientconn
