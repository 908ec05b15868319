// Package modern speaks revision 2026-07-28 and later: the era without sessions,
// in which every request carries what its server must know.
//
// Its front half serves modern clients over Streamable HTTP: it checks a
// request's envelope and headers, hands it to an exchange.Handler, stamps what
// the revision demands onto the result, and turns subscriptions/listen into a
// stream fed by a mailbox.
//
// The package refuses to know where an answer comes from: what an upstream of
// the other era sends reaches it through package exchange only.
package modern
