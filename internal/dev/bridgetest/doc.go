// Package bridgetest answers what every test of a concurrent package asks: is
// anything still running, and how do two peers meet without a real network?
//
// What passed between them, and when?
//
// [Main] and [CheckLeaks] fail a package, or one test, that leaves goroutines
// behind. [Listen] makes a network in memory that works in synctest bubbles,
// net/http's client and server included. A [Recorder] has all that passes on its wires as a
// transcript, which two runs of a script have in common byte for byte, and [Diff] shows where
// they have not. [Eventually] waits for what comes over a real socket, [FreeAddr] is where
// nobody listens yet, [Counts], [Logs] and [Log] take what is counted and logged; [Forms] are
// texts that must not change. The package is imported by tests only. Of the protocol it knows
// nothing: scripted peers write their bytes themselves.
package bridgetest
