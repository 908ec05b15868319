// Package status has what a gateway tells of itself while it runs: its servers, its
// clients, who follows what, and which questions wait for an answer. The parts of a gateway
// fill it in; the admin address shows it.
//
// Every list is bounded, and says how many entries it leaves out. Nothing in it grants
// access: sessions have names, not ids.
package status
