// Package redact hides secrets in texts for logs, errors and reports.
//
// A [Redactor] has a set of secret values, and hides them anywhere in a text, including
// their forms in URLs, in JSON, in quotes and in Authorization headers. [Looks] hides
// text that looks like a credential, for texts of servers, whose secrets are unknown
// here.
//
// The package does not know the configuration, logs or the protocol.
package redact
