// Package pin detects when a server changes the definitions of its tools.
//
// A model acts on the definition of a tool. A server that a person has reviewed once can
// change it the next day. So [Pins] compares definitions with the digests of accepted ones,
// which a [Store] keeps: those of the first complete list, and those that a person has
// accepted since. Changed tools are logged, or hidden and refused.
//
// A digest is of what the server said: definitions are compared before anything is made of
// them for clients. The package reads definitions as bytes and does not interpret them.
package pin
