package anthropic

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An ability lists the request features that a model supports. The API rejects a request with an
// unsupported feature.
type ability struct {
	temperature bool   // accepts a temperature other than the default
	forced      bool   // tool_choice any
	schema      bool   // output_config.format
	thinking    string // the type of thinking to request; empty: none
	effort      string // empty: not sent
}

// version matches a model's line and version in its name: claude-opus-4-20250514,
// claude-3-5-haiku-20241022, claude-sonnet-5-5, anthropic/claude-haiku-4.5.
var version = lazyregexp.New(`claude-(?:([a-z]+)-)?(\d)(?:[-.](\d{1,2}))?(?:\D|$)`)

// abilities returns the abilities of the model of that name. An unknown Claude is treated as a
// newer one, which supports less. A model that is no Claude is assumed to be behind a service with
// the original version of the API.
//
// Sources: the migration guides of Claude Opus 5.5, Sonnet 5.5 and Haiku 5.5, the guides on
// thinking ("Troubleshooting thinking": support by model) and structured outputs, at
// platform.claude.com/docs.
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
		return can // the configured effort decides
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

// always reports whether a line of models cannot switch off thinking.
func always(line string) bool { return line == "fable" || line == "mythos" }

// asked returns the configured effort, or "" for "none".
func asked(effort string) string {
	if effort == "none" {
		return ""
	}
	return effort
}
