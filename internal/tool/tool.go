// Package tool implements the five read-only tools that an agent uses to inspect the documents:
// search, get_document, summarise_results, compare_documents and extract_entities. A strategy's
// actor and an external client get the same tools.
//
// A [Session] parses a call, refuses arguments that do not follow the tool's schema exactly, and
// renders the results. A [Reach] executes the call on behalf of the principal. A tool has no access
// to the run or the store, and it cannot change anything. Results are rendered as JSON, so that
// document text cannot pass for anything else. The session assigns a handle to everything that a
// later call can name: results are numbered from 1, and documents are d1, d2, and so on.
package tool

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay/llm"
)

// The names of the tools.
const (
	Search      = "search"
	GetDocument = "get_document"
	Summarise   = "summarise_results"
	Compare     = "compare_documents"
	Extract     = "extract_entities"
)

// Names lists the tools.
func Names() []string { return []string{Search, GetDocument, Summarise, Compare, Extract} }

// Limits of a call's arguments, and their defaults.
const (
	MaxArguments = 8 << 10 // bytes

	maxQuery       = 400 // characters
	maxName        = 200 // characters, of a collection
	maxReference   = 2000
	maxFilter      = 1000
	maxCollections = 8
	maxResults     = 20 // of a search, and as arguments of one call
	defaultResults = 8
	maxDocuments   = 4
	minPage        = 200 // bytes
	maxPage        = 6000
	defaultPage    = 3000
	maxOffset      = 1 << 30
	maxNumber      = 1 << 20
)

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
		{name: Search, description: "Searches the documents and returns the passages that fit best, each with its result number, its document (d1, d2, …), " +
			"its relevance from 0 to 1 and its text. Ask for one thing at a time, with its names and numbers as the documents would write them; " +
			"a second search needs other words than the first.", schema: object(
			required("query", text(maxQuery, "what to look for: a question or a few words")),
			optional("collections", list(text(maxName, "the name of a collection"), 1, maxCollections, "look only in these collections; it can narrow a search and never widen it")),
			optional("filter", text(maxFilter, `keep only documents with this metadata, as in: year >= 2024 and type = "report". It can narrow a search and never widen it`)),
			optional("limit", whole(1, maxResults, fmt.Sprintf("how many results, %d if left out", defaultResults))),
		)},
		{name: GetDocument, description: "Reads on in a document: returns its text from an offset on, as a result with a number of its own, and how long the document is. " +
			"Use it where a passage is cut off, or where the answer has to stand near it.", schema: object(
			required("document", text(maxReference, "a document of an earlier result, as d3, or the URI of a document")),
			optional("collection", text(maxName, "of a URI that no result had: the collection that it is in")),
			optional("offset", whole(0, maxOffset, "byte to begin at, 0 if left out")),
			optional("limit", whole(minPage, maxPage, fmt.Sprintf("how many bytes, %d if left out", defaultPage))),
		)},
		{name: Summarise, description: "Says in a few statements what results say, each with the numbers of the results that say it.", schema: object(
			required("results", numbers("numbers of earlier results")),
			optional("question", text(maxQuery, "what to sum up; all that they say, if left out")),
		)},
		{name: Compare, description: "Holds two to four documents against one another, by the results that were found in them: where they agree, differ or contradict each other.", schema: object(
			required("documents", list(text(maxReference, "a document of an earlier result, as d3, or its URI"), 2, maxDocuments, "the documents to compare")),
			optional("question", text(maxQuery, "what to compare; all that they share, if left out")),
		)},
		{name: Extract, description: "Lists what results name (people, organisations, identifiers, dates, numbers) and the facts they state about it, each with the numbers of its results.", schema: object(
			required("results", numbers("numbers of earlier results")),
			optional("question", text(maxQuery, "what the facts should bear on; the most important ones, if left out")),
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

func whole(least, most int, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Description: description, Minimum: new(float64(least)), Maximum: new(float64(most))}
}

func list(of *jsonschema.Schema, least, most int, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: description, Items: of, MinItems: new(least), MaxItems: new(most), UniqueItems: true}
}

func numbers(description string) *jsonschema.Schema {
	return list(whole(1, maxNumber, "the number of a result"), 1, maxResults, description)
}
