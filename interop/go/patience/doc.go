// Package patience holds the proofs that a call lasts as long as its client waits, with real
// clients and servers of both eras over all transports that they have.
package patience
