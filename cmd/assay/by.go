package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// A deed is what a role did to an answer.
type deed struct{ role, did string }

// deeds say what the roles did to an answer, in the order in which readers want to
// know it.
var deeds = []deed{
	{role.GeneratorRole, "written"}, {role.PlannerRole, "planned"}, {role.GraderRole, "graded"}, {role.VerifierRole, "verified"},
}

// byLine says which models made an answer and what that took; empty: none was asked.
func byLine(a assay.Answer) string {
	if !slices.ContainsFunc(a.Roles, func(u assay.RoleUse) bool { return u.Model != assay.LocalModel }) {
		return ""
	}
	var parts []string
	did := map[string][]string{} // by whom, what
	for _, d := range deeds {
		if who := doers(a.Roles, d.role); who != "" {
			if did[who] == nil {
				parts = append(parts, who)
			}
			did[who] = append(did[who], d.did)
		}
	}
	for i, who := range parts {
		parts[i] = enumerate(did[who]) + " " + who
	}
	line := strings.Join(parts, ", ")
	if line == "" {
		line = "models were asked"
	}
	tokens := a.Usage.InputTokens + a.Usage.OutputTokens
	line = strings.ToUpper(line[:1]) + line[1:] + fmt.Sprintf("; %s, %s tokens", count(a.Usage.Calls, "call", "calls"), thousands(tokens))
	if a.Usage.CostMicros > 0 {
		line += ", cost " + money(a.Usage.CostMicros)
	}
	return line
}

// doers says who did a role: "by openai/gpt-6-luna", "locally", or both. A model that
// brought nothing, so that the local role stood in, did not; the notes name it.
func doers(uses []assay.RoleUse, name string) string {
	local := slices.ContainsFunc(uses, func(u assay.RoleUse) bool { return u.Role == name && u.Model == assay.LocalModel })
	var who []string
	for _, u := range uses {
		by := "by " + u.Model
		if u.Model == assay.LocalModel {
			by = "locally"
		} else if local && u.Usage.OutputTokens == 0 {
			continue
		}
		if u.Role == name && !slices.Contains(who, by) {
			who = append(who, by)
		}
	}
	return enumerate(who)
}

// stoodIn reports whether a local role did what a model was to do.
func stoodIn(a assay.Answer) bool {
	return slices.ContainsFunc(a.Roles, func(local assay.RoleUse) bool {
		return local.Model == assay.LocalModel && slices.ContainsFunc(a.Roles, func(u assay.RoleUse) bool {
			return u.Role == local.Role && u.Model != assay.LocalModel
		})
	})
}

// enumerate writes a list: "a", "a and b", "a, b and c".
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// thousands writes a number with commas: 4,312.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// money writes millionths of the currency.
func money(micros int64) string {
	s := strconv.FormatFloat(float64(micros)/1e6, 'f', 6, 64)
	s = strings.TrimRight(s, "0")
	if _, decimals, _ := strings.Cut(s, "."); len(decimals) < 2 {
		s += strings.Repeat("0", 2-len(decimals))
	}
	return s
}
