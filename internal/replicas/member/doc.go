// Package member is an Engine over a Store: what the engines with a broker
// have in common. A broker is a Store of few methods; who lives, who holds
// what and when it moves is decided here, by one loop per replica.
//
// No decision compares the clocks of two machines. A member lives as long as
// the count in its record has risen within replicas.MemberTTL, by the clock
// of whoever looks. A claim has no time to live: it counts while its holder
// lives. While the store is away nobody is declared dead, and what was known
// stands. A replica that was stopped for a while and wakes reads everything
// before it renews, and yields what others have claimed.
package member
