package status

import (
	"fmt"
	"slices"
	"testing"
)

// Lists are bounded, and count what they leave out.
func TestListsAreBounded(t *testing.T) {
	var clients Clients
	var questions Questions
	var quirks Quirks
	for i := range MaxQuirks + 5 {
		quirks.Add(Quirk{Name: fmt.Sprint(i)})
	}
	if len(quirks.List) != MaxQuirks || quirks.Left != 5 || quirks.List[0].Name != "0" {
		t.Errorf("%d quirks, %d left", len(quirks.List), quirks.Left)
	}
	for i := range MaxClients + MaxQuestions + 5 {
		clients.Add(Client{Name: fmt.Sprint(i)})
		questions.Add(Question{Method: fmt.Sprint(i)})
	}
	if len(clients.List) != MaxClients || clients.Left != MaxQuestions+5 || clients.List[MaxClients-1].Name != fmt.Sprint(MaxClients-1) {
		t.Errorf("%d clients, %d left", len(clients.List), clients.Left)
	}
	if len(questions.List) != MaxQuestions || questions.Left != MaxClients+5 || questions.List[0].Method != "0" {
		t.Errorf("%d questions, %d left", len(questions.List), questions.Left)
	}
}

// Clients have an order that stays, whatever the order in which they were added.
func TestClientsSort(t *testing.T) {
	sorted := []Client{
		{Server: "a", Era: "legacy", Name: "x", Principal: "p", Session: "1"},
		{Server: "a", Era: "legacy", Name: "x", Principal: "p", Session: "2"},
		{Server: "a", Era: "legacy", Name: "x", Principal: "q", Session: "1"},
		{Server: "a", Era: "legacy", Name: "y", Principal: "p", Session: "1"},
		{Server: "a", Era: "modern", Name: "x", Principal: "p"},
		{Server: "b", Era: "legacy", Name: "x", Principal: "p", Session: "1"},
	}
	c := Clients{List: slices.Clone(sorted)}
	slices.Reverse(c.List)
	if c.Sort(); !slices.Equal(c.List, sorted) {
		t.Errorf("sorted: %+v", c.List)
	}
}
