package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// A deed is a role's contribution to an answer.
type deed struct{ role, did string }

// deeds lists the contributions of the roles, ordered by their interest to readers.
var deeds = []deed{
	{assay.ManagedRole, "written"}, {role.GeneratorRole, "written"}, {role.PlannerRole, "planned"}, {role.RewriterRole, "reworded"},
	{role.ActorRole, "acted"}, {role.GraderRole, "graded"}, {role.JudgeRole, "judged"}, {role.VerifierRole, "verified"},
}

// byLine names the models that made an answer and their usage. It is empty if no model was called.
func byLine(a assay.Answer) string {
	if a.Cached != nil {
		return "" // made in another run, which the notes name
	}
	var searched string
	asked := false
	for _, u := range a.Roles {
		switch {
		case u.Model == assay.LocalModel:
		case u.Role == assay.SearchRole:
			searched = "searched with " + u.Model
		default:
			asked = true
		}
	}
	if !asked && searched == "" {
		return ""
	}
	var order []string
	did := map[string][]string{} // contributions by model
	for _, d := range deeds {
		who := doer(a, d.role)
		if who == "" || !asked || d.role == role.JudgeRole && who == "locally" {
			continue
		}
		if d.role == role.GeneratorRole && doer(a, assay.ManagedRole) != "" {
			continue // the role only split the service's text into statements
		}
		if d.did == "written" && len(a.Claims) == 0 {
			d.did = "drafted" // no claim is shown
		}
		if did[who] == nil {
			order = append(order, who)
		}
		did[who] = append(did[who], d.did)
	}
	for i, who := range order {
		order[i] = enumerate(did[who]) + " " + who
	}
	if searched != "" {
		order = append(order, searched)
	}
	line := strings.Join(order, ", ")
	if line == "" {
		line = "no model finished"
	}
	tokens := a.Usage.InputTokens + a.Usage.OutputTokens
	line = strings.ToUpper(line[:1]) + line[1:] + fmt.Sprintf("; %s, %s", count(a.Usage.Calls, "call", "calls"), tokenCount(tokens))
	if a.Usage.CostMicros > 0 {
		line += ", cost " + money(a.Usage.CostMicros)
		if free := unpriced(a); len(free) > 0 {
			line += ", excluding " + enumerate(free)
		}
	}
	return line
}

// unpriced lists the models that used tokens without a known price. The reported cost does not
// include them.
func unpriced(a assay.Answer) []string {
	var free []string
	for _, u := range a.Roles {
		if u.Usage.InputTokens+u.Usage.OutputTokens > 0 && u.Usage.CostMicros == 0 {
			free = appendNew(free, u.Model)
		}
	}
	return free
}

// doer describes who did a role: "by openai/gpt-6-luna", "locally", or "locally instead of by
// openai/gpt-6-luna" if a local role replaced a model that failed. It is empty if the role did not
// run.
func doer(a assay.Answer, name string) string {
	var models, asked []string
	local := false
	for _, u := range a.Roles {
		switch {
		case u.Role != name:
		case u.Model == assay.LocalModel:
			local = true
		default:
			asked = appendNew(asked, "by "+u.Model)
			worked := u.Usage.OutputTokens > 0
			if name == role.VerifierRole { // a service counts no tokens; without claims it verified nothing
				worked = u.Usage.Calls > 0 && len(a.Claims) > 0
			}
			if worked {
				models = appendNew(models, "by "+u.Model)
			}
		}
	}
	switch {
	case local && len(asked) > 0:
		return "locally instead of " + enumerate(asked)
	case local:
		return "locally"
	}
	return enumerate(models)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// stoodIn reports whether a local role replaced a provider that failed.
func stoodIn(a assay.Answer) bool {
	return slices.ContainsFunc(a.Notes, func(n assay.Note) bool { return n.Kind == assay.NoteStoodIn })
}

// enumerate formats a list: "a", "a and b", "a, b and c".
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func tokenCount(n int) string {
	if n == 1 {
		return "1 token"
	}
	return thousands(n) + " tokens"
}

// thousands formats a number with commas: 4,312.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// money formats millionths of the currency.
func money(micros int64) string {
	s := strconv.FormatFloat(float64(micros)/1e6, 'f', 6, 64)
	s = strings.TrimRight(s, "0")
	if _, decimals, _ := strings.Cut(s, "."); len(decimals) < 2 {
		s += strings.Repeat("0", 2-len(decimals))
	}
	return s
}
