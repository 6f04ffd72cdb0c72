// Package azuresearch searches an index of Azure AI Search over its REST API: words, vectors that the
// service makes of the query, and its semantic ranker.
//
// Sources: Microsoft, Azure AI Search REST API reference, "Documents - Search Post"; "Create a hybrid
// query"; "Configure semantic ranker"; "OData $filter syntax in Azure AI Search"; "Security filters
// for trimming results".
package azuresearch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/internal/passage"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultVersion is the version of the API.
const DefaultVersion = "2024-07-01"

// The limits of a search.
//
// Sources: Microsoft, "Documents - Search Post", top; "Semantic ranking in Azure AI Search", which
// ranks the best 50 results.
const (
	maxTop       = 1000
	maxRanked    = 50
	defaultPages = 10
)

// Fields are the names of the fields of an index. Text is required.
type Fields struct {
	Text   string
	ID     string // the key of a chunk
	URI    string
	Title  string
	Page   string // a number
	Vector string // queried by meaning; empty: by words alone

	// Metadata are further fields that are retrieved. Fields that a filter names are always.
	Metadata []string

	// Lists are those fields that hold lists of strings, besides those of the sharing.
	Lists []string
}

// A Config configures access to an index. BaseURL, Index, Fields.Text, one credential and a Sharing are
// required; without a Sharing no principal can see anything.
type Config struct {
	Name       string // of the service in errors; empty: "azure-search"
	BaseURL    string // https://SERVICE.search.windows.net
	Index      string
	Version    string // of the API; empty: DefaultVersion
	Collection string // empty: the name of the index

	Key   wire.Secret                                    // API key; sent if Token is nil
	Token func(ctx context.Context) (wire.Secret, error) // Microsoft Entra access token

	Fields   Fields
	Semantic string // semantic configuration; empty: results are not ranked by the semantic ranker
	Sharing  passage.Sharing
	Filter   assay.Filter // applied to every query
	Pages    int          // largest number of calls for one query; 0: 10
	Keep     int          // number of retrieved documents kept for citations; 0: 4096

	Guard    *resilient.Guard // retries searches that are throttled; nil: each is made once
	HTTP     *http.Client     // nil: one that reaches the host of the service alone
	First    time.Duration    // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration    // longest silence within a reply; 0: a minute
	MaxBytes int64            // largest reply; 0: 8 MiB
}

// A Sharing controls access to an index.
type Sharing = passage.Sharing

// A Retriever searches an index. It implements assay.Retriever.
//
// The score of a search is Scores.Managed: BM25, the similarity of vectors or their fusion, depending
// on the query. That of the semantic ranker, from 0 to 4, is Scores.Rerank.
type Retriever struct {
	*passage.Retriever
	config Config
	client wire.Client
	url    string
}

// New returns a retriever for an index. An invalid configuration is assay.ErrInvalid.
func New(c Config) (*Retriever, error) {
	c.Name = cmp.Or(c.Name, "azure-search")
	client, base, err := wire.Endpoint{
		Name: c.Name + "/" + c.Index, BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client(wire.Service{Header: "api-key"})
	if err != nil {
		return nil, err
	}
	switch {
	case c.Index == "":
		return nil, fmt.Errorf("%s has no index: %w", c.Name, assay.ErrInvalid)
	case c.Fields.Text == "":
		return nil, fmt.Errorf("%s: the field with the text is not named: %w", c.Name, assay.ErrInvalid)
	case c.Key.Empty() == (c.Token == nil):
		return nil, fmt.Errorf("%s needs either an API key or an access token: %w", c.Name, assay.ErrInvalid)
	}
	for _, f := range slices.Concat(c.names(), c.Fields.Lists, []string{c.Fields.Vector}) {
		if f != "" && !fieldName.MatchString(f) {
			return nil, fmt.Errorf("%s: %q is not the name of a field: %w", c.Name, f, assay.ErrInvalid)
		}
	}
	c.Pages = cmp.Or(c.Pages, defaultPages)
	r := &Retriever{config: c, client: client}
	r.url = base + "/indexes/" + url.PathEscape(c.Index) + "/docs/search?api-version=" + url.QueryEscape(cmp.Or(c.Version, DefaultVersion))
	r.Retriever, err = passage.New(passage.Config{
		Name: client.Name, Source: "azure-search:" + c.Index, Collection: cmp.Or(c.Collection, c.Index), Pipeline: "azure-search/1",
		Sharing: c.Sharing, Filter: c.Filter, Keep: c.Keep, Guard: c.Guard, Recheck: true, Search: r.find, Check: r.check,
	})
	return r, err
}

// names returns the fields that are always retrieved.
func (c Config) names() []string {
	f, s := c.Fields, c.Sharing
	all := append([]string{f.Text, f.ID, f.URI, f.Title, f.Page, s.UsersKey, s.GroupsKey, s.ACLKey, s.TenantKey}, f.Metadata...)
	all = slices.DeleteFunc(all, func(name string) bool { return name == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// A request is the body of a search.
type request struct {
	Search   string   `json:"search,omitempty"`
	Type     string   `json:"queryType,omitempty"`
	Semantic string   `json:"semanticConfiguration,omitempty"`
	Vectors  []vector `json:"vectorQueries,omitempty"`
	Prefer   string   `json:"vectorFilterMode,omitempty"`
	Filter   string   `json:"filter,omitempty"`
	Select   string   `json:"select"`
	Top      int      `json:"top"`
	Skip     int      `json:"skip,omitempty"`
}

// A vector is a query by meaning, whose vector the service makes.
type vector struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Fields string `json:"fields"`
	K      int    `json:"k"`
}

// request returns the body of a search.
func (r *Retriever) request(in passage.Request) (request, error) {
	c, q := r.config, in.Query
	filter, err := r.compile(in.Filter)
	if err != nil {
		return request{}, fmt.Errorf("%s: %w", r.client.Name, err)
	}
	out := request{Filter: filter, Select: joined(append(c.names(), keysOf(in.Filter)...)), Top: min(q.Limit, maxTop)}
	if q.Mode == assay.ModeVector && c.Fields.Vector == "" {
		return request{}, fmt.Errorf("%s has no field with vectors, so it cannot search in mode %q: %w", r.client.Name, q.Mode, assay.ErrInvalid)
	}
	if q.Mode != assay.ModeVector {
		out.Search = q.Text
	}
	if q.Mode != assay.ModeText && c.Fields.Vector != "" {
		out.Vectors = []vector{{Kind: "text", Text: q.Text, Fields: c.Fields.Vector, K: max(maxRanked, out.Top)}}
		out.Prefer = "preFilter"
	}
	if c.Semantic != "" && out.Search != "" {
		out.Type, out.Semantic = "semantic", c.Semantic
	}
	return out, nil
}

// A reply is the reply to a search. Next is set if there are more results.
type reply struct {
	Value []map[string]json.RawMessage `json:"value"`
	Next  *struct {
		Skip int `json:"skip"`
	} `json:"@search.nextPageParameters"`
	Partial string `json:"@search.semanticPartialResponseReason"`
}

// find makes the search of a request.
func (r *Retriever) find(ctx context.Context, in passage.Request) (passage.Found, error) {
	body, err := r.request(in)
	if err != nil {
		return passage.Found{}, err
	}
	client, err := r.authorised(ctx)
	if err != nil {
		return passage.Found{}, err
	}
	var out passage.Found
	for page := 1; ; page++ {
		got, err := r.page(ctx, client, body)
		if err != nil {
			return passage.Found{}, err
		}
		for _, v := range got.Value {
			out.Passages = append(out.Passages, r.passage(v))
		}
		if got.Partial != "" {
			out.Notes = append(out.Notes, client.Name+": the semantic ranker did not rank all results")
		}
		switch {
		case got.Next == nil || len(out.Passages) >= in.Query.Limit:
			return out, nil
		case len(got.Value) == 0 || got.Next.Skip <= body.Skip:
			return passage.Found{}, client.Fail(llm.BadReply, "the next page begins at %d, after %d", got.Next.Skip, body.Skip)
		case page == r.config.Pages:
			out.Notes = append(out.Notes, fmt.Sprintf("%s: stopped after %d pages; there are more results", client.Name, page))
			return out, nil
		}
		body.Skip = got.Next.Skip
	}
}

// authorised returns the client with its credential.
func (r *Retriever) authorised(ctx context.Context) (*wire.Client, error) {
	client := r.client
	if r.config.Token == nil {
		return &client, nil
	}
	return &client, client.Authorise(ctx, r.config.Token)
}

// page makes one request.
func (r *Retriever) page(ctx context.Context, client *wire.Client, body request) (reply, error) {
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
		return reply{}, err
	}
	defer llm.Report(ctx, assay.Usage{Calls: 1})
	var out reply
	if err := client.JSON(ctx, http.MethodPost, r.url, body, &out); err != nil {
		return reply{}, err
	}
	if out.Value == nil {
		return reply{}, client.Fail(llm.BadReply, "the reply has no list of results")
	}
	return out, nil
}

// passage converts a result.
func (r *Retriever) passage(fields map[string]json.RawMessage) passage.Passage {
	f, meta := r.config.Fields, assay.Metadata{}
	for name, raw := range fields {
		var v assay.Value
		if name[:min(1, len(name))] != "@" && v.UnmarshalJSON(raw) == nil {
			meta[name] = v
		}
	}
	p := passage.Passage{
		ID: meta[f.ID].Text(), Text: meta[f.Text].String, URI: meta[f.URI].String, Title: meta[f.Title].String, Metadata: meta,
		Scores: assay.Scores{Managed: number(fields["@search.score"]), Rerank: number(fields["@search.rerankerScore"])},
	}
	if n := meta[f.Page].Number; n >= 1 && n < 1<<31 {
		p.Page = int(n)
	}
	delete(meta, f.Text) // it is the passage itself
	return p
}

// number returns a JSON number, or nil.
func number(raw json.RawMessage) *float64 {
	var n *float64
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}
