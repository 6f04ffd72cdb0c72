package strategy

import (
	"time"

	"github.com/assay-rag/assay/role"
)

// Settings are the thresholds of the strategies. Zero fields mean the defaults, which come from the
// publications of the strategies.
type Settings struct {
	Auto     AutoSettings     `json:"auto,omitzero" yaml:"auto"`
	CRAG     CRAGSettings     `json:"crag" yaml:"crag"`
	Self     SelfSettings     `json:"self" yaml:"self"`
	Adaptive AdaptiveSettings `json:"adaptive" yaml:"adaptive"`
	Fusion   FusionSettings   `json:"fusion" yaml:"fusion"`
	Judge    RoundSettings    `json:"judge" yaml:"judge"`
	Reflect  ReflectSettings  `json:"reflect" yaml:"reflect"`
	React    ReactSettings    `json:"react" yaml:"react"`
	Multihop MultihopSettings `json:"multihop" yaml:"multihop"`
	Verify   VerifySettings   `json:"verify" yaml:"verify"`
}

// VerifySettings are the thresholds of verification, for all strategies. Each blocks by itself.
type VerifySettings struct {
	// Grounding is the score below which a claim is not supported, whichever verifier gave it.
	// The local verifier has a higher threshold of its own; 0.5.
	Grounding float64 `json:"grounding" yaml:"grounding"`

	// Relevance is how far the whole answer has to answer the user's question; below it the answer
	// is not shown. A model or a service that judges it has a threshold of its own in addition.
	// The default is chosen for the reader; 0.1. The table has the share of answers in % that a
	// threshold blocks: of 342 right sentences of written documents that the reader was not
	// trained on, of the 171 of them whose passage the reader finds likely to answer (from 0.6
	// on, as an answer needs), of 680 sentences that answer another question about the document,
	// and of 120 right paraphrases and 240 that answer another question. Measure again when the
	// reader changes (TestMeasureRelevance in train/fit).
	//
	//	threshold            0.02  0.05  0.10  0.15  0.20  0.30
	//	right                 3.8  10.8  19.6  25.1  28.9  37.4
	//	right, likely         0.0   0.0   1.2   2.3   3.5   5.8
	//	another question's   68.4  84.8  92.2  95.3  96.4  98.2
	//	right paraphrases     0.8   3.3   4.2   9.2   9.2  10.0
	//	another question's   50.0  69.2  83.8  88.8  91.7  95.4
	Relevance float64 `json:"relevance" yaml:"relevance"`
}

// AutoSettings are the settings of the strategy auto.
type AutoSettings struct {
	// Escalate names the strategy that answers if the first search is insufficient, one of
	// Escalations; corrective.
	Escalate string `json:"escalate,omitempty" yaml:"escalate"`
}

// CRAGSettings are the settings of the strategy crag.
type CRAGSettings struct {
	Correct   float64 `json:"correct" yaml:"correct"`     // score from which a hit is relevant; 0.7
	Incorrect float64 `json:"incorrect" yaml:"incorrect"` // score below which it is irrelevant; 0.3
	Relevant  int     `json:"relevant" yaml:"relevant"`   // number of relevant hits that are enough; 2
	Web       int     `json:"web" yaml:"web"`             // results of a web search; 5
	WebScore  float64 `json:"web_score" yaml:"web_score"` // score of a web result; 0.8
}

// SelfSettings are the settings of the strategy self.
type SelfSettings struct {
	Iterations int `json:"iterations" yaml:"iterations"` // maximum number of drafts; 3
}

// AdaptiveSettings are the settings of the strategy adaptive.
type AdaptiveSettings struct {
	Simple   int `json:"simple" yaml:"simple"`     // hits of a simple question; 3
	Moderate int `json:"moderate" yaml:"moderate"` // hits of each search of a moderate question; 5
	Rounds   int `json:"rounds" yaml:"rounds"`     // searches of a moderate question; 2
	Complex  int `json:"complex" yaml:"complex"`   // hits of each sub-question of a complex question; 3
}

// FusionSettings are the settings of the strategy fusion.
type FusionSettings struct {
	Queries int `json:"queries" yaml:"queries"` // rewritings that are searched in addition to the question; 3
}

// ReflectSettings are the settings of the strategy reflect.
type ReflectSettings struct {
	Rounds   int     `json:"rounds" yaml:"rounds"`     // 3
	Coverage float64 `json:"coverage" yaml:"coverage"` // required coverage of the question, in [0, 1]; 0.8
}

// RoundSettings bound a loop.
type RoundSettings struct {
	Rounds int `json:"rounds" yaml:"rounds"` // 3
}

// ReactSettings are the settings of the strategies react and agent.
type ReactSettings struct {
	Steps    int `json:"steps" yaml:"steps"`       // 8
	Compress int `json:"compress" yaml:"compress"` // steps after which the observations are summarised; 3
	Invalid  int `json:"invalid" yaml:"invalid"`   // invalid calls that are answered with an error; 3
}

// MultihopSettings are the settings of the strategy multihop.
type MultihopSettings struct {
	Hops int `json:"hops" yaml:"hops"` // maximum depth of sub-questions that need each other; 5
}

// defaultSettings replace zero fields of Settings. Sources: Yan et al., "Corrective Retrieval
// Augmented Generation", 2024; Asai et al., "Self-RAG", 2023; Jeong et al., "Adaptive-RAG", 2024;
// Raudaschl, "RAG-Fusion", 2023; Yao et al., "ReAct", 2022.
var defaultSettings = Settings{
	Auto:     AutoSettings{Escalate: "corrective"},
	CRAG:     CRAGSettings{Correct: 0.7, Incorrect: 0.3, Relevant: 2, Web: 5, WebScore: 0.8},
	Self:     SelfSettings{Iterations: 3},
	Adaptive: AdaptiveSettings{Simple: 3, Moderate: 5, Rounds: 2, Complex: 3},
	Fusion:   FusionSettings{Queries: 3},
	Judge:    RoundSettings{Rounds: 3},
	Reflect:  ReflectSettings{Rounds: 3, Coverage: role.DefaultThreshold},
	React:    ReactSettings{Steps: 8, Compress: 3, Invalid: 3},
	Multihop: MultihopSettings{Hops: 5},
	Verify:   VerifySettings{Grounding: 0.5, Relevance: 0.1},
}

// Defaults returns the settings that replace zero fields.
func Defaults() Settings { return defaultSettings }

// DefaultLimits returns the limits that replace zero fields.
func DefaultLimits() Limits { return defaultLimits }

func (s Settings) withDefaults() Settings { return s.Over(defaultSettings) }

// Over returns s with unset fields taken from below.
func (s Settings) Over(below Settings) Settings {
	or(&s.Auto.Escalate, below.Auto.Escalate)
	or(&s.CRAG.Correct, below.CRAG.Correct)
	or(&s.CRAG.Incorrect, below.CRAG.Incorrect)
	or(&s.CRAG.Relevant, below.CRAG.Relevant)
	or(&s.CRAG.Web, below.CRAG.Web)
	or(&s.CRAG.WebScore, below.CRAG.WebScore)
	or(&s.Self.Iterations, below.Self.Iterations)
	or(&s.Adaptive.Simple, below.Adaptive.Simple)
	or(&s.Adaptive.Moderate, below.Adaptive.Moderate)
	or(&s.Adaptive.Rounds, below.Adaptive.Rounds)
	or(&s.Adaptive.Complex, below.Adaptive.Complex)
	or(&s.Fusion.Queries, below.Fusion.Queries)
	or(&s.Judge.Rounds, below.Judge.Rounds)
	or(&s.Reflect.Rounds, below.Reflect.Rounds)
	or(&s.Reflect.Coverage, below.Reflect.Coverage)
	or(&s.React.Steps, below.React.Steps)
	or(&s.React.Compress, below.React.Compress)
	or(&s.React.Invalid, below.React.Invalid)
	or(&s.Multihop.Hops, below.Multihop.Hops)
	or(&s.Verify.Grounding, below.Verify.Grounding)
	or(&s.Verify.Relevance, below.Verify.Relevance)
	return s
}

// or sets a field that is unset.
func or[T int | float64 | time.Duration | string](field *T, value T) {
	var unset T
	if *field <= unset {
		*field = value
	}
}
