// Package vertex searches Google Cloud: apps of Vertex AI Search and indexes of Vertex AI Vector
// Search, over their REST APIs, with application default credentials.
//
// Sources: Google Cloud, Vertex AI Search, "Method: servingConfigs.search", "Parse and chunk documents"
// and "Filter custom search for structured or unstructured data"; Vertex AI, "Method:
// indexEndpoints.findNeighbors", "IndexDatapoint" and "Filter vector matches".
package vertex

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/internal/passage"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// A Service is what the adapters of this package have in common. Token and a Sharing are required;
// without a Sharing no principal can see anything.
type Service struct {
	Name       string // in errors; empty: that of the adapter
	BaseURL    string // empty: Google's, for Search
	Collection string // empty: the last part of the resource's name
	Token      func(ctx context.Context) (wire.Secret, error)

	Sharing passage.Sharing
	Filter  assay.Filter // applied to every query
	Keep    int          // number of retrieved documents kept for citations; 0: 4096

	Guard    *resilient.Guard // retries searches that are throttled; nil: each is made once
	HTTP     *http.Client     // nil: one that reaches the host of the service alone
	First    time.Duration    // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration    // longest silence within a reply; 0: a minute
	MaxBytes int64            // largest reply; 0: 8 MiB
}

// A Sharing controls access to a service.
type Sharing = passage.Sharing

// client returns a client of the service and its base URL.
func (s Service) client(name, base string) (wire.Client, string, error) {
	c, url, err := wire.Endpoint{
		Name: cmp.Or(s.Name, name), BaseURL: cmp.Or(s.BaseURL, base), HTTP: s.HTTP, First: s.First, Idle: s.Idle, MaxBytes: s.MaxBytes,
	}.Client(wire.Service{Explain: explain})
	if err == nil && s.Token == nil {
		err = fmt.Errorf("%s has no access token: %w", c.Name, assay.ErrInvalid)
	}
	return c, url, err
}

// explain parses the error of a Google API.
//
// Source: Google Cloud, "API error model" (AIP-193).
func explain(_ int, _ http.Header, body []byte) wire.Fault {
	var reply struct {
		Error struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &reply) // without JSON only the status counts
	f := wire.Fault{Message: reply.Error.Message}
	if reply.Error.Status == "RESOURCE_EXHAUSTED" {
		f.Kind = llm.RateLimited
	}
	return f
}

// The limits of a search.
//
// Source: Google Cloud, "Method: servingConfigs.search", pageSize.
const (
	maxPage      = 100
	defaultPages = 10
)

// A Search configures access to an app of Vertex AI Search. ServingConfig is required.
type Search struct {
	Service

	// ServingConfig is projects/P/locations/L/collections/C/engines/E/servingConfigs/S, or that of a
	// data store.
	ServingConfig string

	// Segments asks for extractive segments of documents, for a data store that is not chunked.
	Segments bool
	Pages    int // largest number of calls for one query; 0: 10
}

// A SearchRetriever searches an app. It implements assay.Retriever.
//
// The relevance score of a chunk or segment is Scores.Managed.
type SearchRetriever struct {
	*passage.Retriever
	config Search
	client wire.Client
	url    string
}

// resource matches the names of Google's resources.
var resource = lazyregexp.New(`^projects/[^/?#\s]+/locations/([a-z0-9-]+)(/[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+)+$`)

// NewSearch returns a retriever for an app. An invalid configuration is assay.ErrInvalid.
func NewSearch(c Search) (*SearchRetriever, error) {
	m := resource.FindStringSubmatch(c.ServingConfig)
	if m == nil || !strings.Contains(c.ServingConfig, "/servingConfigs/") {
		return nil, fmt.Errorf("%q is not the name of a serving config (projects/P/locations/L/collections/C/engines/E/servingConfigs/S): %w", c.ServingConfig, assay.ErrInvalid)
	}
	base := "https://discoveryengine.googleapis.com/v1"
	if m[1] != "global" {
		base = "https://" + m[1] + "-discoveryengine.googleapis.com/v1"
	}
	parts := strings.Split(c.ServingConfig, "/")
	app := parts[len(parts)-3] // the engine or data store
	client, base, err := c.client("vertex-search/"+app, base)
	if err != nil {
		return nil, err
	}
	c.Pages = cmp.Or(c.Pages, defaultPages)
	r := &SearchRetriever{config: c, client: client, url: base + "/" + c.ServingConfig + ":search"}
	r.Retriever, err = passage.New(passage.Config{
		Name: client.Name, Source: "vertex-search:" + app, Collection: cmp.Or(c.Collection, app), Pipeline: "vertex-search/1",
		Sharing: c.Sharing, Filter: c.Filter, Keep: c.Keep, Guard: c.Guard, Recheck: true, Search: r.find, Check: checkFilter,
	})
	return r, err
}

// A searchRequest is the body of a search.
type searchRequest struct {
	Query  string      `json:"query"`
	Size   int         `json:"pageSize"`
	Token  string      `json:"pageToken,omitempty"`
	Filter string      `json:"filter,omitempty"`
	Spec   contentSpec `json:"contentSearchSpec"`
}

type contentSpec struct {
	Mode       string          `json:"searchResultMode"`
	Extractive *extractiveSpec `json:"extractiveContentSpec,omitempty"`
}

type extractiveSpec struct {
	Segments int  `json:"maxExtractiveSegmentCount"`
	Score    bool `json:"returnExtractiveSegmentScore"`
}

// A searchReply is the reply to a search.
type searchReply struct {
	Results []struct {
		Chunk    *chunk    `json:"chunk"`
		Document *document `json:"document"`
	} `json:"results"`
	Next string `json:"nextPageToken"`
}

type chunk struct {
	ID       string   `json:"id"`
	Content  string   `json:"content"`
	Score    *float64 `json:"relevanceScore"`
	Document struct {
		URI    string                     `json:"uri"`
		Title  string                     `json:"title"`
		Struct map[string]json.RawMessage `json:"structData"`
	} `json:"documentMetadata"`
	Pages struct {
		Start int `json:"pageStart"`
	} `json:"pageSpan"`
}

type document struct {
	ID      string                     `json:"id"`
	Struct  map[string]json.RawMessage `json:"structData"`
	Derived struct {
		Title    string `json:"title"`
		Link     string `json:"link"`
		Segments []struct {
			Content string   `json:"content"`
			Page    any      `json:"pageNumber"` // a number or a string
			Score   *float64 `json:"relevanceScore"`
		} `json:"extractive_segments"`
	} `json:"derivedStructData"`
}

// find makes the search of a request.
func (r *SearchRetriever) find(ctx context.Context, in passage.Request) (passage.Found, error) {
	if in.Query.Mode != assay.ModeHybrid {
		return passage.Found{}, fmt.Errorf("%s: Vertex AI Search cannot search in mode %q: %w", r.client.Name, in.Query.Mode, assay.ErrInvalid)
	}
	filter, err := compile(in.Filter)
	if err != nil {
		return passage.Found{}, fmt.Errorf("%s: %w", r.client.Name, err)
	}
	client := r.client
	if err := client.Authorise(ctx, r.config.Token); err != nil {
		return passage.Found{}, err
	}
	body := searchRequest{Query: in.Query.Text, Size: min(in.Query.Limit, maxPage), Filter: filter, Spec: contentSpec{Mode: "CHUNKS"}}
	if r.config.Segments {
		body.Spec = contentSpec{Mode: "DOCUMENTS", Extractive: &extractiveSpec{Segments: 1, Score: true}}
	}
	var out passage.Found
	for page := 1; ; page++ {
		var got searchReply
		if err := call(ctx, &client, r.url, body, &got); err != nil {
			return passage.Found{}, err
		}
		for _, res := range got.Results {
			if res.Chunk != nil {
				out.Passages = append(out.Passages, res.Chunk.passage())
			}
			if res.Document != nil {
				out.Passages = append(out.Passages, res.Document.passages()...)
			}
		}
		switch {
		case got.Next == "" || len(out.Passages) >= in.Query.Limit:
			return out, nil
		case page == r.config.Pages:
			out.Notes = append(out.Notes, fmt.Sprintf("%s: stopped after %d pages; there are more results", client.Name, page))
			return out, nil
		}
		body.Token = got.Next
	}
}

// call makes one request.
func call(ctx context.Context, client *wire.Client, url string, in, out any) error {
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
		return err
	}
	defer llm.Report(ctx, assay.Usage{Calls: 1})
	return client.JSON(ctx, http.MethodPost, url, in, out)
}

func (c *chunk) passage() passage.Passage {
	return passage.Passage{
		ID: c.ID, Text: c.Content, URI: c.Document.URI, Title: c.Document.Title, Page: max(0, c.Pages.Start),
		Metadata: metadata(c.Document.Struct), Scores: assay.Scores{Managed: c.Score},
	}
}

func (d *document) passages() []passage.Passage {
	var out []passage.Passage
	meta := metadata(d.Struct)
	for _, s := range d.Derived.Segments {
		page := 0
		if n, err := strconv.Atoi(fmt.Sprint(s.Page)); err == nil && n > 0 {
			page = n
		}
		out = append(out, passage.Passage{
			ID: d.ID, Text: s.Content, URI: d.Derived.Link, Title: d.Derived.Title, Page: page, Metadata: meta, Scores: assay.Scores{Managed: s.Score},
		})
	}
	return out
}

// metadata converts metadata of Google. It drops values of kinds that assay does not have.
func metadata(raw map[string]json.RawMessage) assay.Metadata {
	meta := assay.Metadata{}
	for key, data := range raw {
		var v assay.Value
		if v.UnmarshalJSON(data) == nil && v.Kind != assay.KindTime {
			meta[key] = v
		}
	}
	return meta
}
