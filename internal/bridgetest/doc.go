// Package bridgetest answers what every test of a concurrent package asks: is
// anything still running, and how do two peers meet without a real network?
//
// [Main] and [CheckLeaks] fail a package, or one test, that leaves goroutines
// behind. The package is imported by tests only. It knows nothing of the
// protocol: scripted peers write their bytes themselves.
package bridgetest
