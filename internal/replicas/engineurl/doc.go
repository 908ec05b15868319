// Package engineurl reads the URL of an engine of replicas: which engine it is,
// where its servers are, and what they want to be told. Its errors say what to
// write instead, and contain nothing of the URL but its scheme: a password may
// stand anywhere in one that is misspelled.
package engineurl
