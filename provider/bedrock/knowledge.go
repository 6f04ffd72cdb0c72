package bedrock

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/llm"
)

// A SearchType is a search method of a knowledge base.
type SearchType string

// The search types.
const (
	SearchHybrid   SearchType = "HYBRID"   // words and vectors
	SearchSemantic SearchType = "SEMANTIC" // vectors only
)

// A KnowledgeBase configures the search of a knowledge base. ID is required. Without a Sharing no
// principal can see anything of it.
type KnowledgeBase struct {
	ID         string // or ARN
	Collection string // name of its collection; empty: the ID
	Sharing    Sharing

	Search SearchType   // for hybrid queries; empty: Bedrock's choice
	Filter assay.Filter // applied to every query

	// ImplicitModel is the ARN of a model that derives a filter over Attributes from each query
	// (implicit filtering); empty: none. Its filter applies in addition to the others.
	ImplicitModel string
	Attributes    []Attribute

	RerankModel string // ARN of a model that reranks the results; empty: none

	Guardrail Guardrail // checks the results; zero: none

	EpochKeys []string // metadata keys with seconds since 1970
	Pages     int      // largest number of calls for one query; 0: 10
	Keep      int      // number of retrieved documents kept for citations; 0: 4096
}

// An Attribute is a metadata key that implicit filters may use.
type Attribute struct {
	Key         string
	Type        string // "STRING", "NUMBER", "BOOLEAN" or "STRING_LIST"
	Description string
}

// A Retriever searches a knowledge base. It implements assay.Retriever.
//
// Each retrieved passage becomes a document version with the passage's whole text, so that quotes
// are spans of it. The passages of one source are versions of one document. ACL and Version cover
// the documents most recently retrieved by this Retriever, in this process.
//
// A knowledge base with hierarchical chunking returns parents in place of the children that
// matched. A passage that occurs several times, or lies within another of the same source, is part
// of one hit: the larger passage, with the smaller as its child.
//
// Bedrock's score is Scores.Managed, or Scores.Rerank if Bedrock reranks. It is also the hit's
// Relevance, clipped to [0, 1]. It is not calibrated, which is stated in the notes.
type Retriever struct {
	provider *Provider
	config   KnowledgeBase
	id       string
	name     string

	mu    sync.Mutex
	acls  map[string]assay.ACL      // by document
	texts map[string]assay.Document // by document and version
	order []string                  // keys of texts, oldest first
}

// The defaults and limits of a knowledge base.
//
// Source: AWS, Amazon Bedrock API Reference, KnowledgeBaseVectorSearchConfiguration,
// numberOfResults.
const (
	defaultPages = 10
	defaultKeep  = 4096
	maxResults   = 100
)

// KnowledgeBase returns a retriever for a knowledge base. An invalid configuration is ErrInvalid.
func (p *Provider) KnowledgeBase(c KnowledgeBase) (*Retriever, error) {
	id, err := idOf(c.ID, "knowledge-base")
	if err != nil {
		return nil, err
	}
	if err := c.Sharing.check(); err != nil {
		return nil, fmt.Errorf("knowledge base %s: %w", id, err)
	}
	if !slices.Contains([]SearchType{"", SearchHybrid, SearchSemantic}, c.Search) {
		return nil, fmt.Errorf("knowledge base %s has search type %q, want %q or %q: %w", id, c.Search, SearchHybrid, SearchSemantic, assay.ErrInvalid)
	}
	if (c.ImplicitModel == "") != (len(c.Attributes) == 0) {
		return nil, fmt.Errorf("knowledge base %s: implicit filters need both a model and its attributes: %w", id, assay.ErrInvalid)
	}
	kinds := types.AttributeType("").Values()
	for _, a := range c.Attributes {
		if !slices.Contains(kinds, types.AttributeType(a.Type)) || a.Key == "" || a.Description == "" {
			return nil, fmt.Errorf("knowledge base %s: attribute %q of the type %q: want a key, a description and a type of %v: %w", id, a.Key, a.Type, kinds, assay.ErrInvalid)
		}
	}
	if err := c.Guardrail.check(); err != nil {
		return nil, fmt.Errorf("knowledge base %s: %w", id, err)
	}
	filters := filterer{epochs: c.EpochKeys}
	if _, err := filters.compile(c.Filter); err != nil {
		return nil, fmt.Errorf("knowledge base %s: %w", id, err)
	}
	c.Collection, c.Pages, c.Keep = cmp.Or(c.Collection, id), cmp.Or(c.Pages, defaultPages), cmp.Or(c.Keep, defaultKeep)
	return &Retriever{
		provider: p, config: c, id: id, name: p.config.Name + "/knowledge-base/" + id,
		acls: map[string]assay.ACL{}, texts: map[string]assay.Document{},
	}, nil
}

// Model returns the knowledge base's name in errors and budgets:
// "bedrock/knowledge-base/ABCDEFGHIJ".
func (k *Retriever) Model() string { return k.name }

// Retrieve implements assay.Retriever. It returns no hits, without calling Bedrock, if access sees
// nothing of the knowledge base or the query is for other collections. Failures of Bedrock are
// *llm.Error.
func (k *Retriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	results := assay.Results{Hits: []assay.Hit{}, Terms: []assay.Term{}}
	if q.Limit < 1 {
		return results, fmt.Errorf("query for %d hits: %w", q.Limit, assay.ErrInvalid)
	}
	if len(q.Collections) > 0 && !slices.Contains(q.Collections, k.config.Collection) {
		return results, nil
	}
	terms := analysis.QueryTerms(q.Text, nil)
	if len(terms) == 0 {
		return results, nil
	}
	limits, ok := k.config.Sharing.filter(access)
	if !ok {
		results.Notes = searchNotes(hidden(k.name))
		return results, nil
	}
	in, notes, err := k.input(q, limits)
	if err != nil {
		return results, err
	}
	found, err := k.pages(ctx, in, q.Limit)
	if err != nil {
		return results, err
	}
	results.Hits = k.hits(access, q, found, &notes)
	results.Notes = searchNotes(notes...)
	tell(&results, terms)
	return results, nil
}

// searchNotes returns texts as notes of a search.
func searchNotes(texts ...string) []assay.Note {
	var notes []assay.Note
	for _, t := range texts {
		notes = append(notes, assay.Note{Kind: assay.NoteSearch, Text: t})
	}
	return notes
}

// input returns the request for a query with the additional filter limits.
func (k *Retriever) input(q assay.Query, limits assay.Filter) (*bedrockagentruntime.RetrieveInput, []string, error) {
	search, notes, err := k.search(q)
	if err != nil {
		return nil, nil, err
	}
	vector, filterNotes, err := k.vector(assay.And(q.Filter, limits), q.Limit, search)
	if err != nil {
		return nil, nil, err
	}
	in := &bedrockagentruntime.RetrieveInput{
		KnowledgeBaseId: &k.id, RetrievalQuery: &types.KnowledgeBaseQuery{Text: &q.Text},
		RetrievalConfiguration: &types.KnowledgeBaseRetrievalConfiguration{VectorSearchConfiguration: vector},
		GuardrailConfiguration: k.config.Guardrail.retrieval(),
	}
	return in, append(notes, filterNotes...), nil
}

// search returns the search type of a query, and notes on features that Bedrock lacks.
func (k *Retriever) search(q assay.Query) (SearchType, []string, error) {
	var notes []string
	for what, asked := range map[string]bool{
		"rewrites": len(q.Rewrites) > 0, "feedback": q.Feedback, "diversity": q.Diversity > 0, "rank fusion": q.Fusion != "",
	} {
		if asked {
			notes = append(notes, fmt.Sprintf("%s: knowledge bases do not support %s; it was ignored", k.name, what))
		}
	}
	slices.Sort(notes)
	switch q.Mode {
	case assay.ModeHybrid:
		return k.config.Search, notes, nil
	case assay.ModeVector:
		return SearchSemantic, notes, nil
	}
	return "", nil, fmt.Errorf("%s: knowledge bases cannot search in mode %q: %w", k.name, q.Mode, assay.ErrInvalid)
}

// vector returns the configuration of the vector search.
func (k *Retriever) vector(f assay.Filter, limit int, search SearchType) (*types.KnowledgeBaseVectorSearchConfiguration, []string, error) {
	filters := filterer{epochs: k.config.EpochKeys}
	filter, err := filters.compile(assay.And(k.config.Filter, f))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", k.name, err)
	}
	v := &types.KnowledgeBaseVectorSearchConfiguration{
		Filter: filter, NumberOfResults: aws.Int32(int32(min(limit, maxResults))), OverrideSearchType: types.SearchType(search),
	}
	if k.config.ImplicitModel != "" {
		implicit := &types.ImplicitFilterConfiguration{ModelArn: &k.config.ImplicitModel}
		for _, a := range k.config.Attributes {
			implicit.MetadataAttributes = append(implicit.MetadataAttributes, types.MetadataAttributeSchema{
				Key: &a.Key, Type: types.AttributeType(a.Type), Description: &a.Description,
			})
		}
		v.ImplicitFilterConfiguration = implicit
	}
	if k.config.RerankModel != "" {
		v.RerankingConfiguration = &types.VectorSearchRerankingConfiguration{
			Type: types.VectorSearchRerankingConfigurationTypeBedrockRerankingModel,
			BedrockRerankingConfiguration: &types.VectorSearchBedrockRerankingConfiguration{
				ModelConfiguration: &types.VectorSearchBedrockRerankingModelConfiguration{ModelArn: &k.config.RerankModel},
			},
		}
	}
	return v, filters.notes, nil
}

// A retrieved contains Bedrock's results for a query.
type retrieved struct {
	results    []types.KnowledgeBaseRetrievalResult
	intervened bool // a guardrail has intervened
	cut        bool // there are more results after the last page
}

// pages requests pages until there are limit results.
func (k *Retriever) pages(ctx context.Context, in *bedrockagentruntime.RetrieveInput, limit int) (retrieved, error) {
	var found retrieved
	for range k.config.Pages {
		out, err := k.page(ctx, in)
		if err != nil {
			return found, err
		}
		found.results = append(found.results, out.RetrievalResults...)
		found.intervened = found.intervened || out.GuardrailAction == types.GuadrailActionIntervened
		in.NextToken = out.NextToken
		if aws.ToString(in.NextToken) == "" || len(found.results) >= limit {
			return found, nil
		}
	}
	found.cut = true
	return found, nil
}

// page makes one request.
func (k *Retriever) page(ctx context.Context, in *bedrockagentruntime.RetrieveInput) (*bedrockagentruntime.RetrieveOutput, error) {
	x, err := k.provider.exchange(ctx, k.name)
	if err != nil {
		return nil, err
	}
	defer x.End()
	if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
		return nil, err
	}
	defer llm.Report(ctx, assay.Usage{Calls: 1})
	out, err := x.session.agent.Retrieve(x.Context, in, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return nil, x.Fail(err, k.explain)
	}
	return out, nil
}

// explain returns the message for an error of the knowledge base.
func (k *Retriever) explain(code, message string) (llm.ErrorKind, string) {
	return explainResource("knowledge base "+k.id, k.provider.knownRegion(), code, message)
}

// explainResource returns a message for a resource that does not exist in the region, or that the
// credentials may not use.
func explainResource(what, region, code, message string) (llm.ErrorKind, string) {
	switch {
	case code == "ResourceNotFoundException":
		return llm.NoModel, fmt.Sprintf("%s does not exist in region %s; configure another name or region. Bedrock says: %s", what, region, message)
	case code == "AccessDeniedException":
		return llm.BadKey, fmt.Sprintf("the credentials may not use %s in region %s. Bedrock says: %s", what, region, message)
	}
	return "", ""
}

// hits converts results to hits in Bedrock's order, best first, and adds notes on dropped results.
func (k *Retriever) hits(access assay.Access, q assay.Query, found retrieved, notes *[]string) []assay.Hit {
	var hits []assay.Hit
	empty, foreign := 0, false
	for _, r := range found.results {
		doc, page := k.document(r.Content, r.Location, r.Metadata)
		switch {
		case doc.Text == "":
			empty++
			continue
		case !access.Allows("", doc.ACL):
			foreign = true
			continue
		}
		k.keep(doc)
		hits = append(hits, k.hit(doc, page, r.Score, q.Text))
	}
	hits = nest(hits)
	if len(hits) > 0 {
		*notes = append(*notes, k.name+": relevance is the knowledge base's own score, which is not calibrated")
	}
	if empty > 0 {
		*notes = append(*notes, fmt.Sprintf("%s: skipped %d results without text, such as images", k.name, empty))
	}
	if foreign {
		*notes = append(*notes, k.name+" returned passages that the access filter excludes; they were dropped")
	}
	if found.intervened {
		*notes = append(*notes, k.name+": a guardrail intervened in the results")
	}
	if found.cut {
		*notes = append(*notes, fmt.Sprintf("%s: stopped after %d pages; there are more results", k.name, k.config.Pages))
	}
	return hits[:min(len(hits), q.Limit)]
}

// hit converts a document retrieved for a query to a hit.
func (k *Retriever) hit(doc assay.Document, page int, score *float64, query string) assay.Hit {
	h := assay.Hit{
		Chunk: assay.Chunk{
			ID: assay.ChunkID(doc.ID, doc.Version, 0), Document: doc.ID, Version: doc.Version, Kind: assay.ChunkProse,
			End: len(doc.Text), Headings: []string{}, Tokens: llm.EstimateTokens(doc.Text),
		},
		Text: doc.Text, Collection: doc.Collection, URI: doc.URI, Title: doc.Title, Page: page,
		Matched: matched(query, doc.Text),
	}
	if score != nil && !math.IsNaN(*score) && !math.IsInf(*score, 0) {
		s := *score
		if k.config.RerankModel != "" {
			h.Scores.Rerank = &s
		} else {
			h.Scores.Managed = &s
		}
		h.Scores.Relevance = min(max(s, 0), 1)
	}
	return h
}

// nest merges hits that contain one another. Hits keep their order. A hit that contains another
// takes the better position of the two.
func nest(hits []assay.Hit) []assay.Hit {
	type ranked struct {
		assay.Hit
		rank int
	}
	all := make([]ranked, len(hits))
	for i, h := range hits {
		all[i] = ranked{h, i}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(len(b.Text), len(a.Text)) })
	var kept []ranked
next:
	for _, h := range all {
		for i := range kept {
			k := &kept[i]
			if k.Chunk.Document != h.Chunk.Document {
				continue
			}
			at := strings.Index(k.Text, h.Text)
			if at < 0 {
				continue
			}
			k.Scores, k.rank = better(k.Scores, h.Scores), min(k.rank, h.rank)
			if len(h.Text) < len(k.Text) {
				adopt(&k.Hit, h.Hit, at)
			}
			continue next
		}
		kept = append(kept, h)
	}
	slices.SortFunc(kept, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	out := make([]assay.Hit, len(kept))
	for i, k := range kept {
		out[i] = k.Hit
	}
	return out
}

// adopt makes h a child of parent, in whose text it begins at offset at.
func adopt(parent *assay.Hit, h assay.Hit, at int) {
	parent.Chunk.Kind = assay.ChunkSection
	child := h.Chunk
	child.Version, child.Ordinal, child.Parent = parent.Chunk.Version, len(parent.Children)+1, parent.Chunk.ID
	child.ID = assay.ChunkID(child.Document, child.Version, child.Ordinal)
	child.Start, child.End = at, at+len(h.Text)
	parent.Children = append(parent.Children, child)
}

// better returns the scores with the higher relevance.
func better(a, b assay.Scores) assay.Scores {
	if b.Relevance > a.Relevance {
		return b
	}
	return a
}

// matched returns the terms of a query that occur in a text.
func matched(query, text string) []string {
	held := map[string]bool{}
	for _, t := range analysis.Tokens(text, "") {
		held[t.Term] = true
	}
	var out []string
	for _, t := range analysis.QueryTerms(query, nil) {
		if slices.ContainsFunc(t.Forms, func(form string) bool { return held[form] }) {
			out = append(out, t.Text)
		}
	}
	return out
}

// tell fills in statistics on the query's terms. They cover only the hits, since the number of
// matching passages in the knowledge base is unknown.
func tell(r *assay.Results, terms []analysis.QueryTerm) {
	r.Chunks, r.Total = len(r.Hits), len(r.Hits)
	for _, t := range terms {
		term := assay.Term{Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Weight: 1}
		for _, h := range r.Hits {
			if slices.Contains(h.Matched, t.Text) {
				term.Chunks++
			}
		}
		r.Terms = append(r.Terms, term)
	}
}
