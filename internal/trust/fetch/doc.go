// Package fetch fetches documents from URLs that others have chosen.
//
// Servers name the URL of their metadata, metadata names authorization servers, and these
// name the URLs that issue tokens. Whoever writes such a document could make this process
// send requests to hosts that only it can reach, or keep it busy (CWE-918, CWE-400). The
// client of [New]
//
//   - accepts only https, and http only between loopback addresses,
//   - checks the address of each connection after the host's name was resolved: it must be
//     public, unless the configured URL has an address of the same kind, or
//     [Options.AllowHosts] has the host's name,
//   - does not follow redirects,
//   - limits the time, the header and the body of each response.
//
// Behind a proxy of the environment, which resolves names itself, only the URL is checked.
//
// The package does not know what is fetched.
package fetch
