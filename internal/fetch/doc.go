// Package fetch answers one question: may this process fetch a URL that somebody else has
// chosen?
//
// Servers name where their metadata is, metadata names authorization servers, and these
// name where tokens are issued. Whoever writes such a document could have this process
// send requests to hosts that only it can reach, or keep it busy (CWE-918, CWE-400). [New]
// returns an HTTP client for such URLs. It
//
//   - accepts https alone, and http only between addresses of loopback,
//   - checks the address of each connection after the host's name was resolved: it has to
//     be public, unless the URL from the configuration is on an address of the same kind,
//     or [Options.AllowHosts] has the host's name,
//   - follows no redirects,
//   - bounds the time, the header and the body of each response.
//
// Behind a proxy of the environment, which resolves names itself, only the URL is checked.
//
// The package knows nothing of what is fetched.
package fetch
