package role

import "context"

// An Extractor lists the entities and facts of evidence. Its cautious output is
// empty.
type Extractor interface {
	Extract(ctx context.Context, c Caller, in ExtractInput) (Extraction, error)
}

// ExtractInput is evidence and the type of the entities to list. The question is what the facts
// should bear on; empty: the most important facts.
type ExtractInput struct {
	Reading
	EntityType string `json:"entity_type,omitempty"` // one of the following or other words; empty: AnyEntity
}

// The usual types of entities.
const (
	AnyEntity    = "any"
	Person       = "person"
	Organisation = "organisation"
	Place        = "place"
	Product      = "product"
	Date         = "date"
	Amount       = "amount" // a number with its unit
	Identifier   = "identifier"
)

// An Extraction holds entities and facts. Entities that no source names verbatim are left out, and
// so are facts about them.
type Extraction struct {
	Entities []Entity    `json:"entities"`
	Facts    []Statement `json:"facts"` // with only text and evidence
	Dropped  []Dropped   `json:"dropped,omitempty"`

	Outcome
}

// An Entity is something that evidence names.
type Entity struct {
	Name     string `json:"name"`     // as the sources write it
	Kind     string `json:"kind"`     // in a word or two: "person", "substance"
	Evidence []int  `json:"evidence"` // numbers of the evidence that names it, ascending
}

// A Summariser summarises evidence with regard to a question, or all of it if the question is
// empty. Its cautious output is empty.
type Summariser interface {
	Summarise(ctx context.Context, c Caller, in Reading) (Summary, error)
}

// A Summary is a summary of evidence.
type Summary struct {
	Statements []Statement `json:"statements"` // with only text and evidence
	Dropped    []Dropped   `json:"dropped,omitempty"`

	Outcome
}

// A Comparer compares documents. Its cautious output is empty.
type Comparer interface {
	Compare(ctx context.Context, c Caller, in Reading) (Contrast, error)
}

// A Contrast is a comparison point by point.
type Contrast struct {
	Points  []Point   `json:"points"`
	Dropped []Dropped `json:"dropped,omitempty"`

	Outcome
}

// A Point is one aspect of a comparison.
type Point struct {
	Aspect   string      `json:"aspect"`
	Sides    []Statement `json:"sides"` // two or more, with only text and evidence
	Relation Relation    `json:"relation"`
}

// A Relation is the relation between the sides of a point.
type Relation string

// The relations.
const (
	Agree    Relation = "agree"
	Differ   Relation = "differ"
	Conflict Relation = "conflict" // they cannot both be true
	Silent   Relation = "silent"   // one side does not mention it
)
