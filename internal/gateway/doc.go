// Package gateway ties fronts to backs: it answers "which server is this for, in
// which profile, and who has to hear of that change?".
//
// It owns what all servers share: the HTTP endpoint that sorts messages by era,
// the table of servers, the index of topics and subscribers, the bus, and the
// shutdown that ends all of them in order. Each server is built by one
// constructor and ended by one Close.
//
// The package refuses to know how either era looks on the wire beyond the two
// signs that tell them apart: the envelope's revision and the header's.
package gateway
