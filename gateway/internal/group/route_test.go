package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/watchtest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A groupRig is a Group with members of Go calls, and who follows it.
type groupRig struct {
	*rig
	*watchtest.Hub
	group *Group
}

// withGroup runs a test in a bubble of its own. All must have ended at its end.
func withGroup(t *testing.T, members []*fake, test func(t *testing.T, r *groupRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &groupRig{rig: newRig(t, nil, members...)}
		r.group = newGroup(r.Back, r.audience)
		r.Hub = &watchtest.Hub{Audience: r.audience, T: t, Scope: "all/1", Watch: r.group.Watch}
		defer func() {
			_ = r.group.Close(t.Context()) // it never fails
			for _, f := range members {
				f.wantTopics(t)
			}
		}()
		test(t, r)
	})
}

// newFollowed returns a member with resources, which has subscriptions to them.
func newFollowed(name string, uris ...string) *fake {
	f := newFake(name, "tool")
	f.capabilities = `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}`
	f.pages[spec.MethodResourcesList] = [][]string{resourceItems(uris...)}
	f.pages[spec.MethodResourcesTemplates] = [][]string{{}}
	return f
}

func uriTopics(uris ...string) []fanout.Topic { return watchtest.URITopics("all/1", uris...) }

// wantTopics compares what a member is followed for.
func (f *fake) wantTopics(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := f.topics(); !slices.Equal(got, want) {
		t.Errorf("%s is followed for %q, want %q", f.name, got, want)
	}
}

// A resource is followed at the member that lists it, or that has handed it out; one that nobody
// has at all members with subscriptions.
func TestG05SubscriptionsGoToWhoHasIt(t *testing.T) {
	files, docs, tools := newFollowed("files", "file:///a"), newFollowed("docs", "doc:1"), newFake("tools", "x")
	withGroup(t, []*fake{files, docs, tools}, func(t *testing.T, r *groupRig) {
		r.uris.HandOut(&mcp.Profile{Scope: "all/1"}, r.roster.names[1], "handed:1")
		r.Listen(uriTopics("doc:1", "handed:1", "file:///a", "new:1")...).WantHonored("doc:1 handed:1 file:///a new:1")
		files.wantTopics(t, "resourceUpdated file:///a", "resourceUpdated new:1")
		docs.wantTopics(t, "resourceUpdated doc:1", "resourceUpdated handed:1", "resourceUpdated new:1")
		tools.wantTopics(t)
		files.change(func(f *fake) {
			f.follow = func(_ context.Context, t fanout.Topic) (bool, error) { return t.URI != "new:2", nil }
		})
		r.Listen(uriTopics("new:2")...).WantHonored("new:2")
		docs.change(func(f *fake) { f.follow = files.follow })
		r.Listen(uriTopics("new:2", "new:3")...).WantHonored("new:2 new:3")
		r.Listen(append(uriTopics("new:2"), fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})...)
		tools.wantTopics(t, "toolsListChanged")
	})
}

// A member of which nothing is known yet may have subscriptions: it is asked, too.
func TestG13MembersOfWhichNothingIsKnown(t *testing.T) {
	files, docs := newFollowed("files", "file:///a"), newFollowed("docs", "doc:1")
	docs.describe = func(context.Context, *mcp.Request) (*mcp.Description, error) { return nil, mcp.ErrStarting }
	withGroup(t, []*fake{files, docs}, func(t *testing.T, r *groupRig) {
		files.change(func(f *fake) {
			f.follow = func(_ context.Context, t fanout.Topic) (bool, error) { return t.URI != "new:1", nil }
		})
		r.Listen(uriTopics("new:1")...).WantHonored("new:1")
		docs.wantTopics(t, "resourceUpdated new:1")
	})
}

// What a member's policy does not let a client follow is not accepted, wherever else it might be.
func TestG13PolicyOfMembers(t *testing.T) {
	files, docs := newFollowed("files", "file:///a", "file:///secret"), newFollowed("docs", "doc:1")
	files.denies = []string{"file:///secret", "file:///unknown"}
	withGroup(t, []*fake{files, docs}, func(t *testing.T, r *groupRig) {
		r.Listen(uriTopics("file:///secret", "file:///a", "file:///unknown", "doc:1")...).WantHonored("file:///a doc:1")
		files.wantTopics(t, "resourceUpdated file:///a")
		docs.wantTopics(t, "resourceUpdated doc:1")
		if files.refused != nil {
			t.Errorf("without a request it was told that %q were refused", files.refused)
		}
		docs.change(func(f *fake) { f.gone = true }) // its policy is not known
		r.Listen(uriTopics("doc:1")...).WantHonored("")
	})
}

// What a member refuses to a client's request is told to it, once, and nothing else is.
func TestG13RefusalsAreTold(t *testing.T) {
	files, docs := newFollowed("files", "file:///a", "file:///secret"), newFollowed("docs", "doc:1")
	files.denies = []string{"file:///secret", "file:///unknown"}
	withGroup(t, []*fake{files, docs}, func(t *testing.T, r *groupRig) {
		topics := append(uriTopics("file:///secret", "file:///a", "file:///unknown", "doc:1"), fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})
		r.Want(1, topics...)
		honored, release, err := r.group.Watch(OnBehalf(t.Context(), request(spec.MethodListen, "")), mcp.Profile{Scope: "all/1"}, topics)
		if len(honored) != 3 || err != nil {
			t.Errorf("Watch = %v, %v", honored, err)
		}
		release()
		if got := strings.Join(files.refused, " "); got != "file:///secret file:///unknown" || docs.refused != nil {
			t.Errorf("it was told that %q were refused, and of docs %q", got, docs.refused)
		}
	})
}

// A sub-resource that a member does not let a client follow is told to nobody else either.
func TestG13PolicyOfSubresources(t *testing.T) {
	files, docs := newFollowed("files", "file:///a"), newFollowed("docs")
	files.denies, docs.denies = []string{"file:///a/secret"}, []string{"new:1/secret", "file:///a/open"}
	withGroup(t, []*fake{files, docs}, func(t *testing.T, r *groupRig) {
		r.Listen(uriTopics("file:///a", "new:1")...).WantHonored("file:///a new:1")
		req := request(spec.MethodListen, "")
		for uri, want := range map[string]bool{"file:///a/secret": true, "file:///a/open": false, "new:1/secret": true, "new:1/open": false} {
			of := uriTopics(uri[:strings.LastIndexByte(uri, '/')])[0]
			if got := r.group.Hides(req, fanout.Event{Topic: of, URI: uri}); got != want {
				t.Errorf("Hides(%s) = %v, want %v", uri, got, want)
			}
		}
	})
}

// Who reads lists, and whose policy is asked, is the client on whose behalf it is.
func TestG13OnBehalfOfTheClient(t *testing.T) {
	files := newFollowed("files", "file:///a")
	withGroup(t, []*fake{files, newFollowed("docs")}, func(t *testing.T, r *groupRig) {
		by := request(spec.MethodListen, "")
		by.Principal, by.Session = "ada", "s1"
		p := mcp.Profile{Scope: "all/1", Share: mcp.Share{Principal: "ada"}}
		topics := uriTopics("file:///a")
		r.Want(1, topics...)
		honored, release, err := r.group.Watch(OnBehalf(t.Context(), by), p, topics)
		if len(honored) != 1 || err != nil {
			t.Fatalf("Watch = %v, %v", honored, err)
		}
		release()
		asked := files.asked[0]
		if asked.Principal != "ada" || asked.Session != "s1" || asked.Profile.Share != p.Share {
			t.Errorf("lists were read as %+v, want the client", asked)
		}
	})
}

// The whole acknowledgment comes within patience, also if lists have to be read for it.
func TestG13PatienceIncludesLists(t *testing.T) {
	files, docs := newFollowed("files"), newFollowed("docs", "doc:1")
	docs.serve = func(ctx context.Context, _ *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	docs.follow = func(ctx context.Context, _ fanout.Topic) (bool, error) {
		<-ctx.Done()
		return false, context.Cause(ctx)
	}
	withGroup(t, []*fake{files, docs}, func(t *testing.T, r *groupRig) {
		begun := time.Now()
		tools := fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}
		r.Listen(append(uriTopics("doc:1"), tools)...).WantHonored("doc:1 toolsListChanged") // files takes whatever nobody lists
		if took := time.Since(begun); took != DefaultPatience {
			t.Errorf("acknowledged after %v, want %v", took, DefaultPatience)
		}
	})
}

// A change of a list is known here before clients are told of it.
func TestG13ChangesAreHeededFirst(t *testing.T) {
	files := newFollowed("files")
	withGroup(t, []*fake{files, newFollowed("docs")}, func(t *testing.T, r *groupRig) {
		list := request(spec.MethodToolsList, "")
		r.uris.Listed(&list.Profile, "files", spec.MethodToolsList, time.Now())
		told{r.group}.Publish(fanout.Event{Topic: fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged}})
		r.WantLog("event toolsListChanged")
		r.listings.learn(t.Context(), time.Second, list, spec.MethodToolsList)
		if !slices.Contains(files.requests(), spec.MethodToolsList) {
			t.Error("the list is not read again")
		}
	})
}

// A list that lacked a member which is followed now is completed by a change.
func TestG13FollowedListsAreCompleted(t *testing.T) {
	files, docs := newFollowed("files"), newFollowed("docs")
	docs.serve = func(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) { return nil, errors.New("broken") }
	withGroup(t, []*fake{files, docs}, func(t *testing.T, r *groupRig) {
		res, err := r.group.Serve(t.Context(), request(spec.MethodToolsList, ""), mcp.Nobody{})
		body(t, res, err)
		docs.change(func(f *fake) { f.serve = nil })
		time.Sleep(time.Hour)
		r.WantLog()
		r.Listen(fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})
		time.Sleep(time.Minute)
		r.WantLog("event toolsListChanged")
	})
}

// All members are told of changed roots, and of clients that have left.
func TestG11WhatIsForAllReachesAll(t *testing.T) {
	files, docs, gone := newFollowed("files"), newFollowed("docs"), newFollowed("gone")
	gone.gone = true
	withGroup(t, []*fake{files, gone, docs}, func(t *testing.T, r *groupRig) {
		r.group.RootsChanged(request(spec.NotifyRootsListChanged, ""))
		r.group.ClientLeft(request("", ""))
		for _, f := range []*fake{files, docs} {
			if got := f.requests(); !slices.Equal(got, []string{spec.NotifyRootsListChanged, ""}) {
				t.Errorf("%s was told %q", f.name, got)
			}
		}
	})
}

// A group that has other members, or whose members were replaced, goes on.
func TestG18UpdateAndLook(t *testing.T) {
	files, docs, notes := newFollowed("files", "file:///a"), newFollowed("docs", "doc:1"), newFollowed("notes")
	notes.gone = true
	withGroup(t, []*fake{files, docs, notes}, func(t *testing.T, r *groupRig) {
		r.Listen(append(uriTopics("doc:1"), fanout.Topic{Scope: "all/1", Kind: fanout.ToolsListChanged})...)
		o := r.opts
		o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(m MemberOptions) bool { return m.Name == "files" })
		if err := r.group.Update(o); err != nil {
			t.Fatal(err)
		}
		r.WantLog("event toolsListChanged")
		files.wantTopics(t)
		docs.wantTopics(t, "resourceUpdated doc:1", "toolsListChanged")
		if err := r.group.Update(Options{}); err == nil {
			t.Error("Update with nothing = nil, want an error")
		}
		time.Sleep(time.Hour)
		r.WantLog()
		notes.change(func(f *fake) { f.gone = false })
		r.group.Look()
		notes.wantTopics(t, "toolsListChanged")
		r.WantLog("event toolsListChanged")
		if n, _ := r.Ended(fanout.Topic{}); n > 0 {
			t.Errorf("%d topics ended", n)
		}
	})
}
