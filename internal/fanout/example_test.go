package fanout_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
)

func ExampleMailbox() {
	note := fanout.Topic{Scope: "notebook", Kind: fanout.ResourceUpdated, URI: "note://todo"}
	tools := fanout.Topic{Scope: "notebook", Kind: fanout.ToolsListChanged}

	mail := fanout.NewMailbox(fanout.MailboxOptions{})
	mail.Put(fanout.Event{Topic: note})
	mail.Put(fanout.Event{Topic: tools})
	mail.Put(fanout.Event{Topic: note, Meta: json.RawMessage(`{"rev":2}`)})
	mail.End(errors.New("shutting down"))

	<-mail.Ready()
	for ev, ok := mail.Next(); ok; ev, ok = mail.Next() {
		fmt.Printf("%v %q %s\n", ev.Topic.Kind, ev.URI, cmp.Or(string(ev.Meta), "-"))
	}
	fmt.Println(mail.Ended())
	// Output:
	// resourceUpdated "note://todo" {"rev":2}
	// toolsListChanged "" -
	// shutting down true
}

// Replicas tell each other of events as JSON.
func ExampleEvent() {
	text, err := json.Marshal(fanout.Event{
		Topic: fanout.Topic{Scope: "notebook", Kind: fanout.ResourceUpdated, URI: "note://todo"},
	})
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// {"topic":{"scope":"notebook","kind":"resourceUpdated","uri":"note://todo"}} <nil>
}
