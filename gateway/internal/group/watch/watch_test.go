package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A filter is divided: lists go to all members, a resource to the one that has it. What members
// tell comes under the topic that was asked for, and nothing else.
func TestG13FilterIsDivided(t *testing.T) {
	files, docs := newFake("files", "file:///a", "file:///b"), newFake("docs", "doc:1")
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		want := append([]fanout.Topic{toolsList}, resources("doc:1", "file:///b")...)
		s := r.Listen(want...).WantHonored("toolsListChanged doc:1 file:///b")
		files.wantTopics(t, "file:///b", "toolsListChanged")
		docs.wantTopics(t, "doc:1", "toolsListChanged")
		r.WantLog()
		files.publish(fanout.ResourceUpdated, "file:///b")
		r.WantLog("event file:///b")
		docs.publish(fanout.ToolsListChanged, "")
		r.WantLog("event toolsListChanged")
		files.publish(fanout.ResourceUpdated, "file:///a")
		docs.publish(fanout.ResourcesListChanged, "")
		docs.publish(fanout.ResourceUpdated, "file:///b")
		r.WantLog()
		s.Close()
		time.Sleep(upstream.DefaultLinger + time.Second)
		files.wantTopics(t)
		docs.wantTopics(t)
	})
}

// A sub-resource is told of as the member does.
func TestG13SubresourcesAsMembersTell(t *testing.T) {
	files := newFake("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(resources("file:///a")...).WantHonored("file:///a")
		files.publishAs(fanout.ResourceUpdated, "file:///a", "file:///a/1", `{"n":1}`)
		r.WantLog(`event file:///a as file:///a/1{"n":1}`)
	})
}

// A URI that an update names is known to be the member's.
func TestG05UpdatesHandOutURIs(t *testing.T) {
	files := newFake("files", "file:///a")
	withRig(t, []*fake{newFake("docs"), files}, func(t *testing.T, r *rig) {
		var handed []string
		r.ws.opts.HandedOut = func(p *mcp.Profile, member, uri string) { handed = append(handed, p.Scope+" "+member+" "+uri) }
		r.Listen(append(resources("file:///a"), toolsList)...)
		files.publish(fanout.ResourceUpdated, "file:///a")
		files.publish(fanout.ToolsListChanged, "")
		files.publishAs(fanout.ResourceUpdated, "file:///a", "file:///a/1", "")
		synctest.Wait()
		if want := []string{groupScope + " files file:///a/1"}; !slices.Equal(handed, want) {
			t.Errorf("handed out: %q, want %q", handed, want)
		}
	})
}

// Many clients of a profile cost a member what one does, and leave nothing.
func TestG13ManyClientsFollowOnce(t *testing.T) {
	files, docs := newFake("files", "file:///a"), newFake("docs", "doc:1")
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		var all []*watchtest.Stream
		for range 200 {
			all = append(all, r.Listen(append(resources("file:///a"), toolsList)...).WantHonored("file:///a toolsListChanged"))
		}
		if n := files.asked(); n != 2 || files.followers() != 1 || docs.followers() != 1 {
			t.Errorf("files was asked for %d topics in %d subscriptions, want 2 in one", n, files.followers())
		}
		for _, s := range all {
			s.Close()
		}
		time.Sleep(upstream.DefaultLinger + time.Second)
		synctest.Wait()
		if files.followers()+docs.followers() != 0 || r.ws.table.Of(groupScope) != nil {
			t.Error("something is left of clients that have gone")
		}
	})
}

// There is one acknowledgment, within patience. Lists are in it whoever answers; what may have
// been missed of a member that answers later is told then.
func TestG13AcknowledgedWithinPatience(t *testing.T) {
	files, docs := newFake("files", "file:///a"), newFake("docs", "doc:1")
	docs.follow = takesLong(time.Minute)
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		begun := time.Now()
		want := append([]fanout.Topic{toolsList, list(fanout.PromptsListChanged)}, resources("file:///a")...)
		r.Listen(want...).WantHonored("toolsListChanged promptsListChanged file:///a")
		if took := time.Since(begun); took != patience {
			t.Errorf("acknowledged after %v, want %v", took, patience)
		}
		r.WantLog()
		time.Sleep(time.Minute)
		r.WantLog("event promptsListChanged", "event toolsListChanged")
		docs.wantTopics(t, "promptsListChanged", "toolsListChanged")

		begun = time.Now()
		r.Listen(toolsList).WantHonored("toolsListChanged")
		if took := time.Since(begun); took != 0 {
			t.Errorf("the second was acknowledged after %v, want at once", took)
		}
	})
}

// A resource whose members do not answer in time, and that nobody is known to have, is left out, and
// undone if the answer comes.
func TestG13LateResourcesAreLeftOut(t *testing.T) {
	files, docs := newFake("files"), newFake("docs")
	docs.follow = takesLong(3 * time.Second)
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		r.Listen(resources("doc:1")...).WantHonored("")
		time.Sleep(time.Minute)
		docs.wantTopics(t)
		r.WantLog()
	})
}

// A resource that nobody is known to have is asked for at all members, and accepted if one takes
// it; it is not for one that is away.
func TestG13ResourcesOfNobody(t *testing.T) {
	takes := func(uri string) func(context.Context, fanout.Topic) (bool, error) {
		return func(_ context.Context, t fanout.Topic) (bool, error) { return t.URI == uri, nil }
	}
	files, docs, away := newFake("files"), newFake("docs"), newFake("away")
	files.follow, docs.follow = takes("new:1"), takes("new:2")
	withRig(t, []*fake{files, docs, away}, func(t *testing.T, r *rig) {
		for range 2 {
			begun := time.Now()
			r.Listen(resources("new:2", "denied", "new:4", "new:1")...).WantHonored("new:2 new:1")
			if took := time.Since(begun); took > 0 {
				t.Errorf("acknowledged after %v, want at once", took)
			}
			away.setErr(errAway)
		}
		files.wantTopics(t, "new:1")
		docs.wantTopics(t, "new:2")
		docs.publish(fanout.ResourceUpdated, "new:2")
		r.WantLog("event new:2")
		asked := files.asked()
		files.lose() // which asks it for both again
		time.Sleep(time.Hour)
		if n := files.asked() - asked; n != 2 {
			t.Errorf("a member that does not have what another one has was asked %d times, want 2", n)
		}
	})
}

// A resource of a member that is away is accepted, and told of as changed when the member is back.
func TestG13ResourcesOfAbsentMembers(t *testing.T) {
	files, docs := newFake("files", "file:///a"), newFake("docs", "doc:1", "doc:2")
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		r.Listen(resources("doc:1")...).WantHonored("doc:1")
		docs.setErr(errAway)
		begun := time.Now()
		r.Listen(append(resources("doc:2", "file:///a"), toolsList)...).WantHonored("doc:2 file:///a toolsListChanged")
		if took := time.Since(begun); took > patience {
			t.Errorf("acknowledged after %v, want at most %v", took, patience)
		}
		time.Sleep(10 * time.Minute)
		r.WantLog()
		docs.setErr(nil)
		time.Sleep(askedAgain.Max * 3 / 2)
		r.WantLog("event doc:2", "event toolsListChanged")
		docs.wantTopics(t, "doc:1", "doc:2", "toolsListChanged")
	})
}

// A topic is paid for by the share that asked for it first; what is asked for again by nobody.
func TestG13SharesPayOnce(t *testing.T) {
	files := newFake("files", "file:///a", "file:///b")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		for _, who := range []mcp.Principal{"ada", "bob"} {
			r.Share.Principal = who
			r.Listen(resources("file:///a")...).WantHonored("file:///a")
		}
		r.Listen(resources("file:///b")...).WantHonored("file:///b")
		files.lose()
		time.Sleep(time.Second)
		synctest.Wait()
		var got []string
		for _, s := range files.paid {
			text := string(s.Principal)
			if s.Charged {
				text = "nobody"
			}
			got = append(got, text)
		}
		if want := "ada bob nobody nobody"; strings.Join(got, " ") != want {
			t.Errorf("paid by %q, want %s", got, want)
		}
	})
}

// A member that was replaced is followed again at once, and what could have been missed is told
// as changes. Nothing ends, and others are not touched.
func TestG13ReplacedMemberIsFollowedAgain(t *testing.T) {
	files, docs := newFake("files", "file:///a", "file:///b"), newFake("docs", "doc:1")
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		r.Listen(append(resources("file:///a", "doc:1"), toolsList)...).WantHonored("file:///a doc:1 toolsListChanged")
		for range 3 {
			files.lose()
			time.Sleep(time.Second)
			r.WantLog("event file:///a", "event toolsListChanged")
			files.wantTopics(t, "file:///a", "toolsListChanged")
		}
		if n := docs.asked(); n != 2 {
			t.Errorf("docs was asked for %d topics, want 2", n)
		}
		files.publish(fanout.ResourceUpdated, "file:///a")
		r.WantLog("event file:///a")
		r.wantNoneEnded()
	})
}

// A member that takes no subscriptions any more is looked for, and found at once when the gateway
// says that there is another one.
func TestG13LookFindsAMember(t *testing.T) {
	files := newFake("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(resources("file:///a")...).WantHonored("file:///a")
		files.change(func(f *fake) { f.gone = true })
		files.lose()
		time.Sleep(10 * time.Minute)
		r.WantLog()
		files.change(func(f *fake) { f.gone = false })
		r.ws.Look()
		r.WantLog("event file:///a")
		files.wantTopics(t, "file:///a")
	})
}

// A topic that a member gives up, since it could not reach its server for long, is asked for again
// and again.
func TestG13GivenUpIsFollowedAgain(t *testing.T) {
	files := newFake("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(append(resources("file:///a"), toolsList)...).WantHonored("file:///a toolsListChanged")
		files.setErr(errAway)
		files.giveUp(fanout.ResourceUpdated, "file:///a")
		files.giveUp(fanout.ToolsListChanged, "")
		r.WantLog("event file:///a", "event toolsListChanged") // the last ones of the member
		time.Sleep(10 * time.Minute)
		r.WantLog()
		files.setErr(nil)
		time.Sleep(askedAgain.Max * 3 / 2)
		r.WantLog("event file:///a", "event toolsListChanged")
		files.wantTopics(t, "file:///a", "toolsListChanged")
	})
}

// Whoever comes has a member asked that was away, sooner than it would be.
func TestG13AskedAgainForWhoWaits(t *testing.T) {
	files := newFake("files", "file:///a", "file:///b")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(resources("file:///a")...).WantHonored("file:///a")
		files.setErr(errAway)
		files.lose()
		for asked := -1; asked != files.asked(); {
			asked = files.asked()
			time.Sleep(askedAgain.Max / 4) // in which it was not asked
		}
		files.setErr(nil)
		r.Listen(resources("file:///b")...).WantHonored("file:///b")
		time.Sleep(time.Millisecond)
		files.wantTopics(t, "file:///a", "file:///b")
	})
}

// A resource that a member has accepted, and does not after a restart, is told of once, stays
// accepted, and is asked for again.
func TestG13RefusedAfterARestart(t *testing.T) {
	files := newFake("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(resources("file:///a")...).WantHonored("file:///a")
		takes := files.follow
		files.change(func(f *fake) { f.follow = takesNothing })
		files.lose()
		time.Sleep(time.Hour)
		r.WantLog("event file:///a")
		if n := files.asked(); n < 8 || n > 40 {
			t.Errorf("asked %d times in an hour, want growing pauses", n)
		}
		r.Listen(resources("file:///a")...).WantHonored("")
		files.change(func(f *fake) { f.follow = takes })
		time.Sleep(10 * time.Minute)
		r.WantLog("event file:///a")
		r.wantNoneEnded()
	})
}

// A list that a member does not tell of may be another one all the same after the member was
// replaced.
func TestG13ListsOfSilentMembers(t *testing.T) {
	files := newFake("files")
	files.follow = takesNothing
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(toolsList).WantHonored("toolsListChanged")
		files.lose()
		time.Sleep(time.Second)
		r.WantLog("event toolsListChanged")
		time.Sleep(time.Hour)
		r.WantLog()
	})
}

// A list, or a resource, that a member can't tell of at the moment is asked for again: nothing of it
// is lost, and what the member has else is not put off.
func TestG13PutOffByAMember(t *testing.T) {
	files := newFake("files", "file:///a", "file:///b")
	takes := files.follow
	files.follow = func(ctx context.Context, at fanout.Topic) (bool, error) {
		if at.URI == "file:///b" {
			return takes(ctx, at)
		}
		return false, fmt.Errorf("watching files: %w", mcp.ErrNotNow)
	}
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(toolsList).WantHonored("toolsListChanged")
		r.Listen(resources("file:///a")...).WantNotNow()
		r.Listen(resources("file:///b")...).WantHonored("file:///b")
		time.Sleep(time.Hour)
		r.WantLog()
		if n := files.asked(); n < 8 || n > 40 {
			t.Errorf("asked %d times in an hour, want growing pauses", n)
		}
		files.change(func(f *fake) { f.follow = takes })
		time.Sleep(10 * time.Minute)
		r.WantLog("event toolsListChanged")
		r.Listen(resources("file:///a")...).WantHonored("file:///a")
		r.wantNoneEnded()
	})
}

// Nobody who leaves in the middle leaves anything.
func TestG13LeavingInTheMiddle(t *testing.T) {
	files := newFake("files", "file:///a")
	files.follow = takesLong(time.Second)
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		ctx, leave := context.WithTimeout(t.Context(), time.Second/2)
		defer leave()
		if s := r.ListenCtx(ctx, append(resources("file:///a"), toolsList)...); s.Err == nil {
			t.Error("Watch = nil though its caller left")
		} else {
			r.Want(-1, s.Honored...)
		}
		time.Sleep(time.Minute)
		files.wantTopics(t)
		s := r.Listen(resources("file:///a")...).WantHonored("file:///a")
		s.Close()
		again := r.GoListen(resources("file:///a")...)
		synctest.Wait()
		(<-again).WantHonored("file:///a").Close()
	})
}

// A topic that a member gives up before its answer was heard is followed again, and not taken for
// one that the member tells of.
func TestG13GivenUpBeforeTheAnswer(t *testing.T) {
	files := newFake("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		files.taken = func(of fanout.Topic) {
			files.change(func(f *fake) { f.taken = nil })
			files.giveUp(of.Kind, of.URI)
			time.Sleep(time.Millisecond) // what it gave up is noted meanwhile
		}
		r.Listen(resources("file:///a")...).WantHonored("file:///a")
		files.wantTopics(t, "file:///a")
		r.take()
		files.publish(fanout.ResourceUpdated, "file:///a")
		r.wantInOrder("file:///a")
	})
}

// What comes late of a subscription that has ended says nothing of the one in its place.
func TestG13FormerSubscriptionsSayNothing(t *testing.T) {
	files := newLegacy("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.Listen(append(resources("file:///a"), losses)...).WantHonored("file:///a stateLost")
		w := r.ws.table.Of(groupScope)
		var former *contact
		w.book.Do(t.Context(), func() { former = w.links[0].now })
		files.lose()
		time.Sleep(time.Second)
		r.wantInOrder("file:///a", "stateLost as files")
		asked := files.asked()
		w.noteLost(former, resources("file:///a")[0])
		w.noteLost(former, fanout.Topic{Scope: former.scope, Kind: fanout.ResourceUpdated, URI: "file:///a"})
		w.book.Do(t.Context(), func() { w.rebuilt(former) })
		w.book.Do(t.Context(), func() { w.ended(former, errReplaced) })
		time.Sleep(time.Minute)
		r.wantInOrder()
		if n := files.asked() - asked; n != 0 || files.followers() != 1 {
			t.Errorf("it was asked %d times again, and is followed %d times, want 0 and 1", n, files.followers())
		}
	})
}

// The loss of a session with a legacy member is told after all else, with its name.
func TestG14LossNamesTheMember(t *testing.T) {
	files, docs := newLegacy("files", "file:///a"), newFake("docs", "doc:1")
	files.follow = func(_ context.Context, t fanout.Topic) (bool, error) { return t.Kind != fanout.ToolsListChanged, nil }
	withRig(t, []*fake{files, docs}, func(t *testing.T, r *rig) {
		r.Listen(append(resources("file:///a"), toolsList, resourcesList, losses)...).WantHonored("file:///a toolsListChanged resourcesListChanged stateLost")
		files.wantTopics(t, "file:///a", "resourcesListChanged", "stateLost")
		docs.wantTopics(t, "resourcesListChanged", "toolsListChanged")
		for range 2 { // its back has rebuilt the session, and tells what it told of before
			files.publish(fanout.ResourcesListChanged, "")
			files.publish(fanout.ResourceUpdated, "file:///a")
			files.publish(fanout.StateLost, "")
			r.wantInOrder("resourcesListChanged", "file:///a", "toolsListChanged", "stateLost as files")
		}
		files.lose()
		time.Sleep(time.Second)
		if got := r.take(); len(got) != 4 || got[3] != "stateLost as files" {
			t.Errorf("a replaced member told %q, want the loss at last", got)
		}
		docs.lose()
		time.Sleep(time.Second)
		r.WantLog("event resourcesListChanged", "event toolsListChanged")
	})
}

// What a member gave up is no loss before it is followed again: then it is one.
func TestG14LossOfAMemberThatWasAway(t *testing.T) {
	files := newLegacy("files", "file:///a")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		files.setErr(errAway)
		r.Listen(toolsList, losses).WantHonored("toolsListChanged stateLost")
		files.setErr(nil)
		time.Sleep(time.Minute)
		r.WantLog("event toolsListChanged") // it had no session yet
		files.setErr(errAway)
		files.lose()
		time.Sleep(time.Minute)
		r.WantLog()
		files.setErr(nil)
		time.Sleep(time.Minute)
		r.wantInOrder("toolsListChanged", "stateLost as files")
	})
}

// Members come and go without the end of what their group told of. Clients read lists again, and
// what only a member had that has gone.
func TestG18MembersComeAndGo(t *testing.T) {
	files, docs, notes := newFake("files", "file:///a"), newFake("docs", "doc:1"), newFake("notes", "note:1")
	withRig(t, []*fake{files, docs, notes}, func(t *testing.T, r *rig) {
		r.ws.Show(r.view(files, docs))
		r.Listen(append(resources("file:///a", "doc:1"), toolsList, losses)...).WantHonored("file:///a doc:1 toolsListChanged stateLost")
		r.ws.Show(r.view(notes, docs))
		r.wantInOrder("toolsListChanged", "file:///a", "toolsListChanged")
		files.wantTopics(t)
		docs.wantTopics(t, "doc:1", "toolsListChanged")
		notes.wantTopics(t, "toolsListChanged")
		docs.publish(fanout.ResourceUpdated, "doc:1")
		r.WantLog("event doc:1")
		notes.publish(fanout.ToolsListChanged, "")
		r.WantLog("event toolsListChanged")
		if n := docs.asked(); n != 4 {
			t.Errorf("a member that stays was asked for %d topics, want 3, and what nobody has", n)
		}
		r.Listen(resources("note:1")...).WantHonored("note:1")
		notes.wantTopics(t, "note:1", "toolsListChanged")

		r.take()
		r.ws.Show(r.view(docs, notes)) // in another order
		r.WantLog("event toolsListChanged")
		r.ws.Show(r.view(files, docs))
		time.Sleep(time.Second)
		files.wantTopics(t, "file:///a", "toolsListChanged")
		if got := r.take(); !slices.Contains(got, "file:///a") || !slices.Contains(got, "note:1") {
			t.Errorf("told %q, want what has come back and what has gone", got)
		}
		r.wantNoneEnded()
	})
}

// Replicas follow members each for itself: nothing of a group is at one of them alone.
func TestG19ReplicasFollowForThemselves(t *testing.T) {
	files := newFake("files", "file:///a")
	members := []*fake{files, newFake("docs")}
	withRig(t, members, func(t *testing.T, r *rig) {
		other := newRig(t, members)
		for _, at := range []*rig{r, other} {
			at.Listen(resources("file:///a")...).WantHonored("file:///a")
		}
		files.publish(fanout.ResourceUpdated, "file:///a")
		r.WantLog("event file:///a")
		other.WantLog("event file:///a")
		other.ws.Close()
		files.publish(fanout.ResourceUpdated, "file:///a")
		r.WantLog("event file:///a")
		other.WantLog()
	})
}

// What a member logs outside of calls is told, one by one, as the group has it, and to those alone
// who follow its sessions.
func TestG15MessagesOutsideOfCalls(t *testing.T) {
	files := newLegacy("files")
	withRig(t, []*fake{files, newFake("docs")}, func(t *testing.T, r *rig) {
		r.ws.opts.Logged = func(member string, params []byte) []byte { return []byte(member + " logs " + string(params)) }
		r.Listen(toolsList, losses).WantHonored("toolsListChanged stateLost")
		for range 2 {
			files.publishAs(fanout.StateLost, "", "", "hi")
		}
		files.publishAs(fanout.StateLost, "", fanout.LeftOut, "")
		synctest.Wait()
		var got []string
		for _, ev := range r.Events() {
			got = append(got, fmt.Sprintf("%s %s%s", watchtest.TopicName(ev.Topic), ev.Meta, ev.URI))
			if ev.Topic.Scope != groupScope {
				t.Errorf("told in scope %s", ev.Topic.Scope)
			}
		}
		for i := range got {
			got[i] = strings.TrimRight(got[i], " 12") // each has a number of its own
		}
		if want := []string{"stateLost files logs hi", "stateLost files logs hi", "stateLost"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}
