// Package admin answers what an operator, an orchestrator or a scraper asks of
// the running process: does it serve, is it ready, how much has there been?
//
// It owns no state: whatever it shows it asks for, in one [Snapshot] per
// request, and everybody who may reach its address may see all of it. It
// refuses to know what a server is beyond a name and the state it is in.
package admin
