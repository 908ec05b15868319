package replicas

// An Observer counts what an engine hears. Its methods must not block.
type Observer interface {
	Members(n int)          // that live, with this replica
	Claims(own, wanted int) // that this replica holds, of those that it wants
	Away(away bool)         // the engine, at each change
	Failed()                // a round with the engine
	Skipped()               // records in a round: they are too large, or too many
	Crowded()               // a call that may not wait until it is known who holds a name: too many do
	Overasked()             // a name that others are not asked for whether they hold it: too many are
	// Moved counts a change: joined, draining, left, silent or unheard of another replica;
	// claimed, yielded or released of a claim of this one.
	Moved(change string)
	// Stands is how this replica stands with the others: whether it can serve, and whether it
	// serves less than it could, or nothing, since something differs or is out of reach.
	Stands(ready, degraded bool)
}

// Unobserved is an Observer that counts nothing.
type Unobserved struct{}

func (Unobserved) Members(int)      {}
func (Unobserved) Claims(int, int)  {}
func (Unobserved) Away(bool)        {}
func (Unobserved) Failed()          {}
func (Unobserved) Skipped()         {}
func (Unobserved) Crowded()         {}
func (Unobserved) Overasked()       {}
func (Unobserved) Moved(string)     {}
func (Unobserved) Stands(_, _ bool) {}
