package gemini

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An ability is what a model takes in a request.
type ability struct {
	temperature bool      // one's own
	together    bool      // tools beside a schema
	signatures  bool      // it insists on having its signatures back
	thinking    *thinking // how much to think; nil: say nothing
}

// A thinking is how much a model thinks, in one of two ways.
type thinking struct {
	Level  string `json:"thinkingLevel,omitempty"`  // of Gemini 3 and later
	Budget *int   `json:"thinkingBudget,omitempty"` // in tokens, of Gemini 2.5
}

// version finds a model's version in its name: gemini-2.5-flash-lite.
var version = lazyregexp.New(`gemini-(\d+)(?:\.(\d+))?`)

// abilities returns what the model of that name takes. A Gemini whose version is not
// in its name (gemini-flash-latest) is taken for a new one.
//
// Sources: the guides on thinking, thought signatures, structured outputs and Gemini 3
// at ai.google.dev/gemini-api/docs; "Developer's guide to Gemini 3.8 Flash" and
// "Gemini 3.5 Flash-Lite" at docs.cloud.google.com/gemini-enterprise-agent-platform,
// by which Flash-Lite takes the level MINIMAL, and Flash and Pro do not.
func abilities(name, effort string) ability {
	if !strings.HasPrefix(name, "gemini") {
		return ability{temperature: true}
	}
	major, minor := 3, 0
	if found := version.FindStringSubmatch(name); found != nil {
		major, _ = strconv.Atoi(found[1])
		minor, _ = strconv.Atoi(found[2])
	}
	switch v := 100*major + minor; {
	case v >= 300:
		return ability{together: true, signatures: true, thinking: &thinking{Level: level(name, effort)}}
	case v >= 205:
		n := budget(name, effort)
		return ability{temperature: true, thinking: &thinking{Budget: &n}}
	}
	return ability{temperature: true}
}

// level returns the thinking level to ask for.
func level(name, effort string) string {
	switch {
	case effort != "" && effort != "none":
		return strings.ToUpper(effort)
	case strings.Contains(name, "flash-lite"):
		return "MINIMAL"
	}
	return "LOW"
}

// budget returns how many tokens a model may think. The numbers of the levels are
// those by which Google's own OpenAI-compatible service translates them.
func budget(name, effort string) int {
	switch effort {
	case "low":
		return 1024
	case "medium":
		return 8192
	case "high":
		return 24576
	}
	if strings.Contains(name, "pro") {
		return 128 // it cannot be switched off
	}
	return 0
}
