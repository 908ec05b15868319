// Package replicas shows three mcpbridge processes as one gateway: whatever replica a
// request reaches, and whatever dies, stalls or is cut off on the way, clients see what the
// operators' page promises.
//
// # The world
//
// A test begins with newWorld(t, setup{…}). It starts what the setup names: an engine, the
// servers legacy-go and modern-go of interop/, three replicas A, B and C of the real
// program, each with a configuration of its own, and a balancer before them. All of it has
// ended, and was waited for, when the test is over. A test that fails leaves the whole logs
// and configurations in interop/bin/replicas/NAME OF THE TEST; others leave nothing.
//
//	over(t, both, func(t *testing.T, engine string) { … })  a subtest for each engine
//	w.replicas[i].url("legacy")     a request to one replica: what a directed test uses
//	w.balancer.url("legacy")        a request to the next replica, whatever the connection
//	r.kill(), r.stop(), r.start(), r.pause(), r.resume()    one replica's fate
//	r.gauges(), r.get(path)         what a replica says of itself
//	w.engine.stop(), start(), wipe(), messages()  the engine's fate, and what it was told
//	w.legacy.touch(…), subscriptions(), entries() the server's ledger: what really happened
//
// With setup.links, a proxy stands before each replica's peer listener and between each
// replica and the engine. Between two parties a link flows, stalls (what is sent lies there)
// or is cut (connections break, new ones are refused), for each direction:
//
//	w.part(a, b, cut)               neither replica reaches the other
//	a.toEngine.set("", both ways)   and so on: see link
//
// # The clients
//
// modern_test.go's stream is a listen stream that is read by hand; call is a modern request.
// legacy_test.go's session is a Streamable HTTP or HTTP+SSE session whose every request names
// the replica that gets it. The SDK's clients of the matrix come with steer.
//
// # Engines
//
// Lines run on one nats-server and one redis-server. TestEngineFailsOver has engines of several
// servers, the first of which is killed: failover_test.go.
//
// # Lines
//
// TestLineNN… are the lines of what the feature must show, in the short form that CI has
// time for; REPLICAS=full, which `make soak` sets, makes them as large as they are stated.
// Lengths and counts of both forms stand at the top of each file, as size(short, full). In the
// short form most lines run beside each other, since they wait most of the time; those that
// judge what something costs or how long it takes run before these. See beside.
//
// TestFaults… and those beside them have sessions behind the balancer, a company, live through
// what is wrong with an engine, a link, a clock or a configuration, and count what it costs: 404s,
// other errors, changes and writes that are lost, writes of two processes. A node of NATS that is
// killed or stopped is this test's own program, started as one. FAULTS says how often each fault is
// made. Clocks differ in a program that is built with the tag clockseam.
//
// TestMixed… have replicas of this version serve beside those of an earlier one, which
// interop/previous builds: the last release or, before there is one, the commit that
// testdata/previous names. PREVIOUS=PROGRAM or PREVIOUS=COMMIT takes another one.
package replicas
