// Package wire reads and writes JSON-RPC 2.0 envelopes without changing the bytes they
// carry.
//
// It answers two questions: is this text one well-formed message, and which bytes of it
// are the id, the method, the params and the result? Ids, params and results stay as the
// peer wrote them: numbers keep every digit, objects keep the order of their members, and
// unknown members are kept. [Check] or [Parse] checks a text once; all other functions of
// the package rely on that.
//
// The package does not know methods, eras or transports.
package wire
