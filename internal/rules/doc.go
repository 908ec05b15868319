// Package rules answers: which rules of the translation does a test prove?
//
// The list of rules is a document, docs/rules.md; the evidence is what
// "go test -json" printed. A rule is proven when a test whose name carries the
// rule's id ran and passed. The package knows nothing of what a rule says, and
// runs no tests: its input is a record of a run that somebody made.
package rules
