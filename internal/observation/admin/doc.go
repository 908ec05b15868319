// Package admin serves what an operator, an orchestrator or a scraper asks of the running
// process: whether it serves, whether it is ready, how much there has been, what it is doing
// at the moment, and a page that shows this.
//
// It owns no state but the sessions of the page. Who has not the token learns whether the
// process is well, and no more; see [NewHandler].
package admin
