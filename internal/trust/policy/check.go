package policy

import "fmt"

// Check returns an error for a rule that can have no effect, or not the intended one.
func (r *Rule) Check() error {
	if r.isEmpty() {
		return fmt.Errorf("it matches everything; say whom or what it is about, or change the default")
	}
	for _, method := range r.Methods {
		if subjectOf(method).class == free {
			return fmt.Errorf("%s is always allowed; remove it, or name who may not use the server at all", method)
		}
	}
	if !r.names() || len(r.Methods) == 0 {
		return nil
	}
	for _, method := range r.Methods {
		if !r.concerns(compile(method)) {
			return fmt.Errorf("method %s is about none of the tools, prompts and resources that the rule names, so that it would never match; make it a rule of its own", method)
		}
	}
	return nil
}

func (r *Rule) isEmpty() bool {
	return len(r.Principals) == 0 && len(r.Scopes) == 0 && len(r.Claims) == 0 && len(r.Methods) == 0 && !r.names()
}

func (r *Rule) names() bool { return len(r.Tools)+len(r.Prompts)+len(r.Resources) > 0 }

// concerns reports whether a method that matches p can be about what the rule names.
func (r *Rule) concerns(p pattern) bool {
	has := [kinds]bool{Tool: len(r.Tools) > 0, Prompt: len(r.Prompts) > 0, Resource: len(r.Resources) > 0}
	for _, method := range known[1:] {
		about := subjects[method]
		switch {
		case !p.match(method):
		case has[about.kind],
			about.class == reference && (has[Prompt] || has[Resource]),
			about.class == listen && has[Resource],
			about.class == followUp && has[Tool]:
			return true
		}
	}
	return false
}
