package gemini

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// An ability lists the request features that a model supports.
type ability struct {
	temperature bool      // accepts a temperature
	together    bool      // accepts tools together with a schema
	signatures  bool      // requires its signatures to be sent back
	thinking    *thinking // how much to think; nil: not sent
}

// A thinking controls how much a model thinks, in one of two ways.
type thinking struct {
	Level  string `json:"thinkingLevel,omitempty"`  // Gemini 3 and later
	Budget *int   `json:"thinkingBudget,omitempty"` // in tokens, Gemini 2.5
}

// version matches a model's version in its name: gemini-2.5-flash-lite.
var version = lazyregexp.New(`gemini-(\d+)(?:\.(\d+))?`)

// abilities returns the abilities of the model of that name. A Gemini without a version in its name
// (gemini-flash-latest) is treated as a new one.
//
// Sources: the guides on thinking, thought signatures, structured outputs and Gemini 3 at
// ai.google.dev/gemini-api/docs; "Developer's guide to Gemini 3.8 Flash" and "Gemini 3.5
// Flash-Lite" at docs.cloud.google.com/gemini-enterprise-agent-platform, according to which
// Flash-Lite supports the level MINIMAL, but Flash and Pro do not.
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

// level returns the thinking level to request.
func level(name, effort string) string {
	switch {
	case effort != "" && effort != "none":
		return strings.ToUpper(effort)
	case strings.Contains(name, "flash-lite"):
		return "MINIMAL"
	}
	return "LOW"
}

// budget returns the thinking budget in tokens. The numbers for the levels are those of Google's
// own OpenAI-compatible service.
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
		return 128 // thinking cannot be switched off
	}
	return 0
}
