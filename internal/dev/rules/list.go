package rules

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A Rule is one row of the list.
type Rule struct {
	ID      string   // as in the document: "M2L-34"
	Due     bool     // a test must prove it
	Reason  string   // why it is open; empty if due
	Where   []string // folders of the packages that implement it, each with a test that names it
	Summary string
}

var idForm = regexp.MustCompile(`^(?:F|M2L|L2M|Q|S|U|A|T|G)-\d{2}$`)

// ReadList reads the rules from the tables of a Markdown document: every row whose first
// cell is an id, with the status ("due" or "open: reason") in the second cell, the
// folders of packages in the third and a summary in the fourth. Everything else is
// ignored.
//
// It returns an error with the line if a row has another form, or if an id is listed
// twice. It also returns an error if there are no rows.
func ReadList(r io.Reader) ([]Rule, error) {
	var list []Rule
	seen := make(map[string]bool)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		cells := row(lines.Text())
		if len(cells) == 0 || !idForm.MatchString(cells[0]) {
			continue
		}
		rule, err := parseRule(cells)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if seen[rule.ID] {
			return nil, fmt.Errorf("line %d: %s is listed twice", n, rule.ID)
		}
		seen[rule.ID] = true
		list = append(list, rule)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no rules in the list")
	}
	return list, nil
}

// row splits a table row into its trimmed cells. It returns nil for other lines.
func row(line string) []string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !ok {
		return nil
	}
	cells := strings.Split(strings.TrimSuffix(inner, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func parseRule(cells []string) (Rule, error) {
	if len(cells) != 4 || cells[3] == "" {
		return Rule{}, fmt.Errorf("%s: want four cells: id, status, where, summary", cells[0])
	}
	rule := Rule{ID: cells[0], Where: strings.Fields(strings.ReplaceAll(cells[2], ",", " ")), Summary: cells[3]}
	if cells[1] == "due" {
		rule.Due = true
		return rule, nil
	}
	reason, open := strings.CutPrefix(cells[1], "open:")
	if rule.Reason = strings.TrimSpace(reason); !open || rule.Reason == "" {
		return Rule{}, fmt.Errorf("%s: status %q, want \"due\" or \"open: reason\"", rule.ID, cells[1])
	}
	return rule, nil
}
