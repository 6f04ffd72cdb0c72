package vertex

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/passage"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Measure is the distance measure of an index.
type Measure string

// The measures.
const (
	DotProduct Measure = "DOT_PRODUCT_DISTANCE" // a larger value is nearer
	Cosine     Measure = "COSINE_DISTANCE"
	SquaredL2  Measure = "SQUARED_L2_DISTANCE"
	L1         Measure = "L1_DISTANCE"
)

// Vectors configures access to an index of Vertex AI Vector Search. IndexEndpoint, DeployedIndex,
// Measure, Embedder and the BaseURL of its public endpoint are required.
//
// A datapoint's embedding metadata holds its passage under the keys "text", "uri" and "title"; its
// restricts are its metadata.
type Vectors struct {
	Service

	IndexEndpoint string // projects/P/locations/L/indexEndpoints/E
	DeployedIndex string
	Measure       Measure
	Embedder      llm.Embedder // the model of the index
}

// A VectorRetriever searches an index by meaning. It implements assay.Retriever.
//
// With the measure Cosine the similarity is Scores.Vector. Otherwise Scores.Managed is the dot product,
// or the negative of the distance.
type VectorRetriever struct {
	*passage.Retriever
	config Vectors
	client wire.Client
	url    string
}

// NewVectors returns a retriever for an index. An invalid configuration is assay.ErrInvalid. Since
// restricts of different namespaces cannot be alternatives, a Sharing may have one of UsersKey,
// GroupsKey and ACLKey.
func NewVectors(c Vectors) (*VectorRetriever, error) {
	client, base, err := c.client("vertex-vectors/"+c.DeployedIndex, "")
	if err != nil {
		return nil, err
	}
	keys := slices.DeleteFunc([]string{c.Sharing.UsersKey, c.Sharing.GroupsKey, c.Sharing.ACLKey}, func(k string) bool { return k == "" })
	switch {
	case !resource.MatchString(c.IndexEndpoint) || !strings.Contains(c.IndexEndpoint, "/indexEndpoints/"):
		return nil, fmt.Errorf("%q is not the name of an index endpoint (projects/P/locations/L/indexEndpoints/E): %w", c.IndexEndpoint, assay.ErrInvalid)
	case c.DeployedIndex == "" || c.Embedder == nil:
		return nil, fmt.Errorf("%s needs a deployed index and an embedder: %w", client.Name, assay.ErrInvalid)
	case !slices.Contains([]Measure{DotProduct, Cosine, SquaredL2, L1}, c.Measure):
		return nil, fmt.Errorf("%s has the distance measure %q, which is none: %w", client.Name, c.Measure, assay.ErrInvalid)
	case len(keys) > 1:
		return nil, fmt.Errorf("%s: a sharing by several of users, groups and ACLs cannot be a restrict; use the key of ACLs alone: %w", client.Name, assay.ErrInvalid)
	}
	r := &VectorRetriever{config: c, client: client, url: base + "/v1/" + c.IndexEndpoint + ":findNeighbors"}
	r.Retriever, err = passage.New(passage.Config{
		Name: client.Name, Source: "vertex-vectors:" + c.DeployedIndex, Collection: cmp.Or(c.Collection, c.DeployedIndex), Pipeline: "vertex-vectors/1",
		Sharing: c.Sharing, Filter: c.Filter, Keep: c.Keep, Guard: c.Guard, Recheck: true, Search: r.find, Check: checkRestricts,
	})
	return r, err
}

// A datapoint is a vector with its restricts.
type datapoint struct {
	ID       string                     `json:"datapointId"`
	Vector   []float32                  `json:"featureVector,omitempty"`
	Strings  []restrict                 `json:"restricts,omitempty"`
	Numbers  []numericRestrict          `json:"numericRestricts,omitempty"`
	Metadata map[string]json.RawMessage `json:"embeddingMetadata,omitempty"`
}

type restrict struct {
	Namespace string   `json:"namespace"`
	Allow     []string `json:"allowList,omitempty"`
	Deny      []string `json:"denyList,omitempty"`
}

// A numericRestrict has one of the values. Google writes 64-bit integers as strings.
type numericRestrict struct {
	Namespace string       `json:"namespace"`
	Op        string       `json:"op,omitempty"`
	Int       *json.Number `json:"valueInt,omitempty"`
	Float     *float64     `json:"valueFloat,omitempty"`
	Double    *float64     `json:"valueDouble,omitempty"`
}

// find makes the search of a request.
func (r *VectorRetriever) find(ctx context.Context, in passage.Request) (passage.Found, error) {
	if in.Query.Mode == assay.ModeText {
		return passage.Found{}, fmt.Errorf("%s: Vector Search cannot search in mode %q: %w", r.client.Name, in.Query.Mode, assay.ErrInvalid)
	}
	point, notes, err := restricts(in.Filter)
	if err != nil {
		return passage.Found{}, fmt.Errorf("%s: %w", r.client.Name, err)
	}
	vectors, err := llm.Embed(ctx, r.config.Embedder, llm.Query, []string{in.Query.Text})
	if err != nil {
		return passage.Found{}, err
	}
	client := r.client
	if err := client.Authorise(ctx, r.config.Token); err != nil {
		return passage.Found{}, err
	}
	point.ID, point.Vector = "query", vectors[0]
	body := map[string]any{
		"deployedIndexId": r.config.DeployedIndex, "returnFullDatapoint": true,
		"queries": []any{map[string]any{"datapoint": point, "neighborCount": in.Query.Limit}},
	}
	var got struct {
		Nearest []struct {
			Neighbors []struct {
				Point    datapoint `json:"datapoint"`
				Distance *float64  `json:"distance"`
			} `json:"neighbors"`
		} `json:"nearestNeighbors"`
	}
	if err := call(ctx, &client, r.url, body, &got); err != nil {
		return passage.Found{}, err
	}
	out := passage.Found{Notes: notes}
	for _, nearest := range got.Nearest {
		for _, n := range nearest.Neighbors {
			p := r.passage(n.Point)
			p.Scores = r.config.Measure.scores(n.Distance)
			out.Passages = append(out.Passages, p)
		}
	}
	return out, nil
}

// scores returns the scores of a distance.
func (m Measure) scores(distance *float64) assay.Scores {
	if distance == nil {
		return assay.Scores{}
	}
	d := *distance
	switch m {
	case DotProduct:
		return assay.Scores{Managed: &d}
	case Cosine:
		d = max(-1, min(1, 1-d))
		return assay.Scores{Vector: &d}
	}
	d = -d
	return assay.Scores{Managed: &d}
}

// passage converts a datapoint.
func (r *VectorRetriever) passage(d datapoint) passage.Passage {
	held, meta, s := metadata(d.Metadata), assay.Metadata{}, r.config.Sharing
	for _, n := range d.Strings {
		list := slices.Contains([]string{s.UsersKey, s.GroupsKey, s.ACLKey}, n.Namespace)
		switch {
		case n.Namespace == "" || len(n.Allow) == 0:
		case list || len(n.Allow) > 1:
			meta[n.Namespace] = assay.ListValue(n.Allow...)
		default:
			meta[n.Namespace] = assay.StringValue(n.Allow[0])
		}
	}
	for _, n := range d.Numbers {
		for _, v := range []*float64{n.Float, n.Double} {
			if v != nil {
				meta[n.Namespace] = assay.NumberValue(*v)
			}
		}
		if n.Int != nil {
			if v, err := n.Int.Float64(); err == nil {
				meta[n.Namespace] = assay.NumberValue(v)
			}
		}
	}
	return passage.Passage{ID: d.ID, Text: held["text"].String, URI: held["uri"].String, Title: held["title"].String, Metadata: meta}
}

// Restricts are a conjunction over namespaces. In each, one of the allowed tokens must be there and none
// of the denied. A filter that is no such conjunction is assay.ErrInvalid.

func checkRestricts(f assay.Filter) error {
	_, _, err := restricts(f)
	return err
}

// restricts returns f as the restricts of a query, and notes on deviations from its meaning.
func restricts(f assay.Filter) (d datapoint, notes []string, err error) {
	if err := f.Check(nil); err != nil || f.IsZero() {
		return d, nil, err
	}
	n := passage.Normalizer{Service: "indexes of Vector Search"}
	if f, err = n.Positive(f); err != nil {
		return d, nil, err
	}
	parts := []assay.Filter{f}
	if f.Op == assay.OpAndAll {
		parts = f.Filters
	}
	for _, part := range parts {
		if err := d.restrict(part); err != nil {
			return d, nil, err
		}
	}
	return d, n.Notes, nil
}

// numericOps maps operators to those of numeric restricts.
var numericOps = map[assay.FilterOp]string{
	assay.OpEquals: "EQUAL", assay.OpNotEquals: "NOT_EQUAL", assay.OpGreaterThan: "GREATER", assay.OpGreaterThanOrEquals: "GREATER_EQUAL",
	assay.OpLessThan: "LESS", assay.OpLessThanOrEquals: "LESS_EQUAL",
}

// restrict adds a part of a conjunction.
func (d *datapoint) restrict(f assay.Filter) error {
	if op, ok := numericOps[f.Op]; ok && f.Value.Kind == assay.KindNumber {
		d.Numbers = append(d.Numbers, numericRestrict{Namespace: f.Key, Op: op, Double: &f.Value.Number})
		return nil
	}
	if f.Op == assay.OpNotEquals || f.Op == assay.OpNotIn {
		tokens, ok := tokensOf(f)
		if !ok {
			return unrestrictable(f)
		}
		d.Strings = append(d.Strings, restrict{Namespace: f.Key, Deny: tokens})
		return nil
	}
	alternatives := []assay.Filter{f}
	if f.Op == assay.OpOrAll {
		alternatives = f.Filters
	}
	allow := restrict{Namespace: alternatives[0].Key}
	for _, a := range alternatives {
		tokens, ok := tokensOf(a)
		if !ok || a.Key != allow.Namespace || a.Op == assay.OpNotEquals || a.Op == assay.OpNotIn {
			return unrestrictable(f)
		}
		allow.Allow = append(allow.Allow, tokens...)
	}
	if slices.ContainsFunc(d.Strings, func(r restrict) bool { return r.Namespace == allow.Namespace && r.Allow != nil }) {
		return fmt.Errorf("filter requires the key %q twice, which restricts of Vector Search cannot: %w", allow.Namespace, assay.ErrInvalid)
	}
	d.Strings = append(d.Strings, allow)
	return nil
}

// tokensOf returns the tokens of a comparison of strings.
func tokensOf(f assay.Filter) ([]string, bool) {
	switch f.Op {
	case assay.OpEquals, assay.OpNotEquals, assay.OpListContains:
		return []string{f.Value.String}, f.Value.Kind == assay.KindString
	case assay.OpIn, assay.OpNotIn:
		return f.Value.List, len(f.Value.List) > 0
	}
	return nil, false
}

func unrestrictable(f assay.Filter) error {
	return fmt.Errorf("filter %s cannot be a restrict of Vector Search, which are equalities of strings and comparisons of numbers that all hold: %w", f, assay.ErrInvalid)
}
