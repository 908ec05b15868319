// Package member is an Engine over a Store: what the engines with a broker
// have in common. A broker is a Store of few methods; who lives, who holds
// what and when it moves is decided here, by one loop per replica.
//
// No decision compares the clocks of two machines. A member lives as long as
// the count in its record has risen within replicas.MemberTTL, by the clock
// of whoever looks, or it answers greetings: then it has its sessions still. A
// claim has no time to live: it counts while the store hears its holder, and
// replicas.ClaimMargin longer than that acts on it. Others write the record of
// a member that can't. While the store is away nobody is declared dead, and
// what was known stands. A replica that was stopped for a while and wakes
// reads everything before it renews, and yields what others have claimed.
package member
