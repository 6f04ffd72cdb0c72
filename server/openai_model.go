package server

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// An askModel is a model of OpenAI's interface: where and how to search. Its name has the form
//
//	assay[/COLLECTION][:STRATEGY][:EFFORT]
//
// with the colons and percent signs of COLLECTION percent-encoded. Without a collection all are
// searched that the caller may see.
type askModel struct {
	collection string        // empty: all
	strategy   string        // empty: the default
	effort     strategy.Mode // empty: normal
}

// modelOwner is the owner of all models, and the first part of their names.
const modelOwner = "assay"

var modelEscapes = strings.NewReplacer("%", "%25", ":", "%3A")

func (m askModel) String() string {
	name := modelOwner
	if m.collection != "" {
		name += "/" + modelEscapes.Replace(m.collection)
	}
	for _, option := range []string{m.strategy, string(m.effort)} {
		if option != "" {
			name += ":" + option
		}
	}
	return name
}

// parseModel reads the name of a model. It does not look whether the collection exists.
func parseModel(name string) (askModel, error) {
	var m askModel
	parts := strings.Split(name, ":")
	for _, option := range parts[1:] {
		_, err := strategy.Lookup(option)
		isStrategy := err == nil && option != ""
		isEffort := slices.Contains(strategy.Modes(), strategy.Mode(option))
		switch {
		case isStrategy && m.strategy == "" && m.effort == "":
			m.strategy = option
		case isEffort && m.effort == "":
			m.effort = strategy.Mode(option)
		default:
			return askModel{}, noModel(name)
		}
	}
	if parts[0] == modelOwner {
		return m, nil
	}
	escaped, found := strings.CutPrefix(parts[0], modelOwner+"/")
	collection, err := url.PathUnescape(escaped)
	if !found || err != nil || collection == "" {
		return askModel{}, noModel(name)
	}
	m.collection = collection
	return m, nil
}

// noModel returns the error for a model that does not exist for the caller.
func noModel(name string) error {
	return &parameterError{
		param: "model", code: "model_not_found", kind: assay.ErrNotFound,
		text: fmt.Sprintf("The model %q does not exist. A model is assay[/COLLECTION][:STRATEGY][:EFFORT]; GET /v1/models lists them.", name),
	}
}

// narrow adds the collection, strategy and effort of the model to a request.
func (m askModel) narrow(req *engine.Request) {
	if m.collection != "" {
		req.Collections = []string{m.collection}
	}
	req.Strategy, req.Mode = m.strategy, m.effort
}

// modelOf returns the model of a request.
func modelOf(req engine.Request) askModel {
	m := askModel{strategy: req.Strategy, effort: req.Mode}
	if m.strategy == strategy.Names()[0] {
		m.strategy = ""
	}
	if len(req.Collections) == 1 {
		m.collection = req.Collections[0]
	}
	return m
}

// An openaiModel describes a model.
type openaiModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // 0: models are not created at a time
	OwnedBy string `json:"owned_by"`
}

// An openaiModelList is a list of models.
type openaiModelList struct {
	Object string        `json:"object"`
	Data   []openaiModel `json:"data"`
}

func describeModel(name string) openaiModel {
	return openaiModel{ID: name, Object: "model", OwnedBy: modelOwner}
}

// listModels lists the models without a strategy, which all strategies can be added to.
func listModels(ctx context.Context, s *engine.Session, _ none) (openaiModelList, error) {
	collections, err := s.Collections(ctx)
	if err != nil {
		return openaiModelList{}, err
	}
	list := openaiModelList{Object: "list", Data: []openaiModel{}}
	for _, c := range append([]engine.CollectionSummary{{}}, collections...) {
		for _, effort := range append([]strategy.Mode{strategy.Normal}, strategy.Modes()...) {
			list.Data = append(list.Data, describeModel(askModel{collection: c.Name, effort: effort}.String()))
		}
	}
	return list, nil
}

type modelIn struct {
	ID string `path:"id"`
}

func showModel(ctx context.Context, s *engine.Session, in modelIn) (openaiModel, error) {
	collections, err := s.Collections(ctx)
	if err != nil {
		return openaiModel{}, err
	}
	m, err := parseModel(in.ID)
	if err != nil {
		return openaiModel{}, err
	}
	known := slices.ContainsFunc(collections, func(c engine.CollectionSummary) bool { return c.Name == m.collection })
	if m.collection != "" && !known {
		return openaiModel{}, noModel(in.ID)
	}
	return describeModel(in.ID), nil
}
