// Package names says which tools, prompts and resources of a server clients see, and by
// which names.
//
// A thing has its own name, which is the server's, and a shown name, which is what clients
// see. A [Map] takes one to the other, in both directions. What has no shown name is hidden:
// for clients it does not exist.
//
// The package reads names out of the params of requests and out of the items of lists, and
// writes them there, and nothing else: no text is searched for names. It serves nothing, and
// knows neither clients nor transports.
package names
