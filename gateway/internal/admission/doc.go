// Package admission answers three questions about a request, before anything else is known of
// it: against whose share does it count, may one more of that share be served, and is its
// server still served?
//
// It knows addresses, numbers and ends, and neither HTTP endpoints nor what a request asks for:
// whether a client may have that is for policy to say.
package admission
