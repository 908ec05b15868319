package chaos

import (
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// settle deals some last blows, each with changes that nobody is told of, and
// wants every listener to have the last values after each: another blow would
// make up for what was lost at this one.
func (c *chaos) settle() {
	c.t.Helper()
	c.wantLast("the storm")
	if c.proxy != nil {
		c.post("cut?how=abrupt&hold=300ms")
		c.touch()
		c.wantLast("a cut")
		c.post("cut?how=clean&hold=300ms")
		c.touch()
		c.wantLast("an end")
		c.proxy.turn(halfway)
		c.touch()
		c.proxy.turn(fair)
		c.wantLast("a torn notification")
	}
	for !c.kill() {
		time.Sleep(100 * time.Millisecond) // mcpbridge has yet to start it
	}
	if !c.setup.stdio {
		c.startServer()
	}
	c.wantServer()
	c.touch() // maybe before mcpbridge is back
	c.wantLast("the last death")
	c.stopCalls()
	c.callsDone.Wait()
}

// wantServer waits for the server, which mcpbridge may have to start.
func (c *chaos) wantServer() {
	c.t.Helper()
	rig.Until(c.t, recovery, "the server is there", func() string {
		res, err := c.us.Get("http://" + c.addr + "/admin/subscriptions")
		if err != nil {
			return err.Error()
		}
		_ = res.Body.Close() // that it came is all we want to know
		return ""
	})
}

// wantLast waits until all listeners have what the ledger tells of.
func (c *chaos) wantLast(what string) {
	c.t.Helper()
	c.wantServer()
	for _, e := range c.entries() {
		if e.What == "touch" {
			c.last[e.URI] = e.Version
		}
	}
	begun := time.Now()
	rig.Until(c.t, recovery, "all listeners have the last values after "+what, c.behind)
	c.t.Logf("after %s %d listeners had the last values within %v", what, len(c.listeners), time.Since(begun).Round(time.Millisecond))
}

// post tells the server something that it must do.
func (c *chaos) post(path string) {
	c.t.Helper()
	res, err := c.us.Post("http://"+c.addr+"/admin/"+path, "", http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = res.Body.Close() // its status is all we want to know
	if res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s = %s", path, res.Status)
	}
}
