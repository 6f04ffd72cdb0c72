// Package tool implements the six read-only tools that an agent uses to inspect the documents:
// search, get_document, summarise_results, compare_documents, extract_entities and graph. A
// strategy's actor and an external client get the same tools.
//
// A [Session] parses a call, refuses arguments that do not follow the tool's schema exactly, and
// renders the results. A [Backend] executes the call on behalf of the principal. A tool has no
// access to the run or the store, and it cannot change anything. Results are rendered as JSON, so
// that document text cannot pass for anything else. The session assigns a handle to everything that
// a later call can name: passages are chunks, numbered from 1, and documents are d1, d2, and so on.
package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// The names of the tools.
const (
	Search      = "search"
	GetDocument = "get_document"
	Summarise   = "summarise_results"
	Compare     = "compare_documents"
	Extract     = "extract_entities"
	Graph       = "graph"
)

// Names lists the tools.
func Names() []string { return []string{Search, GetDocument, Summarise, Compare, Extract, Graph} }

// EntityTypes lists the usual values of the argument entity_type. Any other kind of thing, in a few
// words, is a value too.
func EntityTypes() []string {
	return []string{role.AnyEntity, role.Person, role.Organisation, role.Place, role.Product, role.Date, role.Amount, role.Identifier}
}

// Limits of a call's arguments.
const (
	MaxArguments = 8 << 10 // bytes

	maxQuery     = 400 // characters
	maxKind      = 60  // characters, of an entity type
	maxReference = 2000
	maxFilter    = 1000
	maxChunks    = 20 // of one call
	maxDocuments = 4
	maxNames     = 4 // entities of one walk
	maxPages     = 1 << 20
	maxNumber    = 1 << 20

	defaultResults = 8 // of a search
)

// Refused is a call that was not made, in the words of the agent that asked for it, cut to a bounded
// length.
type Refused struct {
	Tool string `json:"tool"`
	Said string `json:"said"` // its arguments, which may be no JSON
}

// RefusedCall returns the record of a call that was not made.
func RefusedCall(name, arguments string) Refused {
	return Refused{Tool: brief(name, 64), Said: brief(arguments, 400)}
}

// A definition is a tool as models and clients see it.
type definition struct {
	name        string
	description string
	schema      *jsonschema.Schema
	held        *jsonschema.Resolved
	raw         json.RawMessage
}

// Tools returns the tool definitions for a model, in the order of Names.
func Tools() []llm.Tool {
	var tools []llm.Tool
	for _, d := range definitions() {
		tools = append(tools, llm.Tool{Name: d.name, Description: d.description, Parameters: d.raw})
	}
	return tools
}

var definitions = sync.OnceValue(func() []definition {
	list := []definition{
		{name: Search, description: "Searches the documents and returns the passages that fit best, each with its chunk number, the id of its document (d1, d2, …), " +
			"its relevance to the question from 0 to 1 and its text. Ask for one thing at a time, with its names and numbers as the documents would write them; " +
			"a second search needs other words than the first.", schema: object(
			required("query", text(maxQuery, "what to look for: a question or a few words")),
			optional("filters", textOrNone(maxFilter, `search only documents whose metadata match this condition, as in: year >= 2024 and type = "report". `+
				"Comparisons are =, !=, >, >=, <, <=, in, startsWith, contains and has; and, or, not and parentheses join them. It narrows a search and never widens it")),
		)},
		{name: GetDocument, description: "Reads a document: the whole text of a short one, else one page of it and how many pages there are. What is read gets a chunk number. " +
			"Use it where a passage is cut off, or where the answer has to stand near it.", schema: object(
			required("id", text(maxReference, "the id of a document of an earlier result, as d3, or the URI of a document")),
			optional("page", whole(1, maxPages, "the page of a long document, 1 if left out; results name the page that they stand on")),
		)},
		{name: Summarise, description: "Sums up in a few statements what chunks say, each with the numbers of the chunks that say it. " +
			"Use it to see what many results say together.", schema: object(
			required("chunks", numbers("numbers of chunks of earlier results")),
		)},
		{name: Compare, description: "Compares what was found in two to four documents in one respect: where they agree, differ or contradict each other, each side with its chunks. " +
			"Search for that respect first, so that each of the documents has a result on it.", schema: object(
			required("ids", list(text(maxReference, "the id of a document of an earlier result, as d3, or its URI"), 2, maxDocuments, "the documents to compare")),
			required("aspect", text(maxQuery, "what to compare, as in: notice period for tenants")),
		)},
		{name: Extract, description: "Lists the things of one type that chunks name, each with the numbers of its chunks, and facts about them. " +
			"Use it to get the names with which to search next.", schema: object(
			required("chunks", numbers("numbers of chunks of earlier results")),
			required("entity_type", text(maxKind, "what to list: "+strings.Join(EntityTypes(), ", ")+", or another kind of thing in a few words")),
		)},
		{name: Graph, description: "Follows the entity graph of the documents from people, organisations, works or identifiers to the passages that are linked to them: " +
			"those that name them, and those that name what stands beside them. Use it where search does not connect two things that no passage names together. " +
			"It returns results as search does.", schema: object(
			required("entities", list(text(maxQuery, "a name as the documents write it"), 1, maxNames, "where to start: names from the question or from results")),
		)},
	}
	for i := range list {
		held, err := list[i].schema.Resolve(nil)
		if err != nil {
			panic(fmt.Sprintf("schema of %s: %v", list[i].name, err))
		}
		raw, err := json.Marshal(list[i].schema)
		if err != nil {
			panic(fmt.Sprintf("schema of %s: %v", list[i].name, err))
		}
		list[i].held, list[i].raw = held, raw
	}
	return list
})

// define returns the tool with the given name.
func define(name string) (definition, bool) {
	for _, d := range definitions() {
		if d.name == name {
			return d, true
		}
	}
	return definition{}, false
}

// A property is a parameter of a tool.
type property struct {
	name     string
	schema   *jsonschema.Schema
	required bool
}

func required(name string, s *jsonschema.Schema) property { return property{name, s, true} }

func optional(name string, s *jsonschema.Schema) property { return property{name, s, false} }

func object(properties ...property) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, // written as false
	}
	for _, p := range properties {
		s.Properties[p.name] = p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.name)
		if p.required {
			s.Required = append(s.Required, p.name)
		}
	}
	return s
}

func text(most int, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description, MinLength: new(1), MaxLength: new(most)}
}

// textOrNone is text that may be empty.
func textOrNone(most int, description string) *jsonschema.Schema {
	s := text(most, description)
	s.MinLength = new(0)
	return s
}

func whole(least, most int, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Description: description, Minimum: new(float64(least)), Maximum: new(float64(most))}
}

func list(of *jsonschema.Schema, least, most int, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: description, Items: of, MinItems: new(least), MaxItems: new(most), UniqueItems: true}
}

func numbers(description string) *jsonschema.Schema {
	return list(whole(1, maxNumber, "the number of a chunk"), 1, maxChunks, description)
}
