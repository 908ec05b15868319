package settings

// Quirks say by name which deviations from the protocol are tolerated: on, which is the default,
// or off. The names are those of package internal/quirks.
type Quirks map[string]string

// allQuirks is the name that stands for all: in the configuration a word.
const allQuirks = "word"

// NoQuirks tolerates none.
func NoQuirks() Quirks { return Quirks{allQuirks: "off"} }

// Off reports whether the quirk of a name is not tolerated.
func (q Quirks) Off(name string) bool { return q[allQuirks] == "off" || q[name] == "off" }
