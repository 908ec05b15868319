// Package policy decides whether a client may send a request, and whether it may do so now.
//
// A [Policy] is the ordered list of rules of one server. The first rule that matches the
// client and the operation decides. An [Operation] is read only from the body of the
// request, never from a header, and an ambiguous body, which two programs could read in
// different ways, is refused. A [Limiter] limits rates and concurrency.
//
// The package only decides. It does not serve or filter, and knows neither eras nor
// transports.
package policy
