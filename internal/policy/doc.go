// Package policy answers two questions about a request: may its sender do this, and may
// it do it now?
//
// A [Policy] is the ordered list of rules of one server. The first rule that matches the
// sender and the operation decides. What an [Operation] is about is read from the body of
// the request alone, never from a header, and a body that two programs could read in
// different ways is refused. [Limiter] bounds rates and concurrency.
//
// The package decides. It serves nothing, filters nothing by itself, and knows neither
// eras nor transports.
package policy
