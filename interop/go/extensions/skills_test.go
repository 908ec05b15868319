package extensions

import (
	"encoding/json"
	"testing"
)

// skillRequests are those of the extension io.modelcontextprotocol/skills.
var skillRequests = []struct{ method, params, answer string }{
	{"skills/list", "", "skills"},
	{"skills/get", `"uri": "skill://grün/SKILL.md"`, "skill"},
	{"resources/directory/read", `"uri": "skill://grün/tones"`, "resources"},
}

// TestS01SkillsWithTheirHints asks a server of 2026-07-28 for its skills. Modern clients
// get its answers byte for byte. Legacy ones have no such extension; they get what it
// answers all the same, hints included.
func TestS01SkillsWithTheirHints(t *testing.T) {
	url := startSkills(t)
	bridge := serve(t, atURL("skills", url)) + "skills"
	direct, modern, legacy := newWireClient(t, url, false), newWireClient(t, bridge, false), newWireClient(t, bridge, true)
	alike(t, "what a modern client is told", member(t, modern.capabilities(), "extensions"), member(t, direct.capabilities(), "extensions"))
	for _, r := range skillRequests {
		t.Run(r.method, func(t *testing.T) {
			want, got, old := direct.result(r.method, r.params, ""), modern.result(r.method, r.params, ""), legacy.result(r.method, r.params, "")
			if r.method != "skills/get" { // which counts
				alike(t, "to a modern client", got, want)
			}
			for _, name := range []string{r.answer, "ttlMs", "cacheScope"} {
				alike(t, name+" to a modern client", member(t, got, name), member(t, want, name))
				alike(t, name+" to a legacy client", member(t, old, name), member(t, want, name))
			}
		})
	}
}

// TestS01SkillsAreNotKeptTooLong asks again for what may not be kept.
func TestS01SkillsAreNotKeptTooLong(t *testing.T) {
	client := newWireClient(t, serve(t, atURL("skills", startSkills(t)))+"skills", false)
	for want := 1; want <= 3; want++ {
		var got int
		text := member(t, client.result("skills/get", `"uri": "skill://grün/SKILL.md"`, ""), "asked")
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("skills/get arrived %d times, %v, want %d: ttlMs is 0", got, err, want)
		}
	}
}
