// Package pin detects when a server changes the definitions of its tools.
//
// A model acts on the definition of a tool. A server that a person has reviewed once can
// change it the next day. So [Pins] stores the digests of accepted definitions in a file of
// the user: those of the first complete list, and those that a person has accepted since.
// Changed tools are logged, or hidden and refused.
//
// The package reads definitions as bytes and does not interpret them.
package pin
