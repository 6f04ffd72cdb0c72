package role

import "context"

// An Extractor lists the entities and facts of evidence. Its cautious output is
// empty.
type Extractor interface {
	Extract(ctx context.Context, c Caller, in Reading) (Extraction, error)
}

// An Extraction is what evidence names and says. An entity that no source names
// verbatim, and a fact about one, is not in it.
type Extraction struct {
	Entities []Entity    `json:"entities"`
	Facts    []Statement `json:"facts"` // with text and evidence alone
	Dropped  []Dropped   `json:"dropped,omitempty"`

	Outcome
}

// An Entity is something that evidence names.
type Entity struct {
	Name     string `json:"name"`     // as the sources write it
	Kind     string `json:"kind"`     // in a word or two: "person", "substance"
	Evidence []int  `json:"evidence"` // numbers of those that name it, ascending
}

// A Summariser says in short what evidence says about a question; an empty
// question asks for all. Its cautious output is empty.
type Summariser interface {
	Summarise(ctx context.Context, c Caller, in Reading) (Summary, error)
}

// A Summary is what evidence says in short.
type Summary struct {
	Statements []Statement `json:"statements"` // with text and evidence alone
	Dropped    []Dropped   `json:"dropped,omitempty"`

	Outcome
}

// A Comparer holds documents against one another. Its cautious output is empty.
type Comparer interface {
	Compare(ctx context.Context, c Caller, in Reading) (Contrast, error)
}

// A Contrast says point by point what pieces of evidence say.
type Contrast struct {
	Points  []Point   `json:"points"`
	Dropped []Dropped `json:"dropped,omitempty"`

	Outcome
}

// A Point is one thing that two or more pieces of evidence are compared by.
type Point struct {
	Aspect   string      `json:"aspect"`
	Sides    []Statement `json:"sides"` // two or more, with text and evidence alone
	Relation Relation    `json:"relation"`
}

// A Relation is how the sides of a point stand to one another.
type Relation string

// The relations.
const (
	Agree    Relation = "agree"
	Differ   Relation = "differ"
	Conflict Relation = "conflict" // both cannot hold
	Silent   Relation = "silent"   // a side does not speak of it
)
