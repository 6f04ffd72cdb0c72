package anthropic

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An ability is what a model takes in a request: the API refuses what it does not,
// and says so only when it is too late for the call.
type ability struct {
	temperature bool   // a temperature other than the default
	forced      bool   // tool_choice any
	schema      bool   // output_config.format
	thinking    string // the type of thinking to ask for; empty: say nothing
	effort      string // empty: say nothing
}

// version finds a model's line and version in its name: claude-opus-4-20250514,
// claude-3-5-haiku-20241022, claude-sonnet-5-5, anthropic/claude-haiku-4.5.
var version = lazyregexp.New(`claude-(?:([a-z]+)-)?(\d)(?:[-.](\d{1,2}))?(?:\D|$)`)

// abilities returns what the model of that name takes. A Claude that is not known
// here is taken for a newer one, which takes less; a model that is no Claude is
// served by somebody who speaks the API as it was at first.
//
// Sources: the migration guides of Claude Opus 5.5, Sonnet 5.5 and Haiku 5.5, the
// guides on thinking ("Troubleshooting thinking": support by model) and structured
// outputs, at platform.claude.com/docs.
func abilities(name, effort string) ability {
	if !strings.Contains(name, "claude") {
		return ability{temperature: true, forced: true, effort: asked(effort)}
	}
	found := version.FindStringSubmatch(name)
	if found == nil {
		return ability{schema: true, effort: asked(effort)}
	}
	major, _ := strconv.Atoi(found[2])
	minor, _ := strconv.Atoi(found[3])
	line, v := found[1], 100*major+minor
	can := ability{
		temperature: v < 407,
		forced:      v <= 500 && !always(line) || line == "haiku" && v <= 505,
		schema:      v >= 405,
		effort:      asked(effort),
	}
	if can.effort != "" {
		return can // how much it thinks is decided by who asked
	}
	switch {
	case line == "haiku" && v == 505, (line == "opus" || line == "sonnet") && v == 500:
		can.thinking = "disabled"
	case line == "sonnet" && v == 505:
		can.thinking = "between_tools"
	case line == "opus" && v == 505, always(line):
		can.effort = "low"
	}
	return can
}

// always reports whether the thinking of a line of models cannot be switched off.
func always(line string) bool { return line == "fable" || line == "mythos" }

// asked returns the effort that somebody has asked for, if they did.
func asked(effort string) string {
	if effort == "none" {
		return ""
	}
	return effort
}
