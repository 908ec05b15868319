// Package rules reports which rules of the translation are proven by tests.
//
// The list of rules is docs/rules.md, and the evidence is the output of "go test -json".
// A rule is proven if a test with the rule's id in its name ran and passed. The package
// does not interpret the rules and runs no tests: its input is the recorded output of a
// run.
package rules
