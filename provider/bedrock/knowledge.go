package bedrock

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/internal/passage"
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

	Guard *resilient.Guard // retries searches that are throttled; nil: each is made once
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
	*passage.Retriever
	provider *Provider
	config   KnowledgeBase
	id       string
}

// A Sharing controls access to a knowledge base.
type Sharing = passage.Sharing

// The defaults and limits of a knowledge base.
//
// Source: AWS, Amazon Bedrock API Reference, KnowledgeBaseVectorSearchConfiguration,
// numberOfResults.
const (
	defaultPages = 10
	maxResults   = 100
)

// KnowledgeBase returns a retriever for a knowledge base. An invalid configuration is ErrInvalid.
func (p *Provider) KnowledgeBase(c KnowledgeBase) (*Retriever, error) {
	id, err := idOf(c.ID, "knowledge-base")
	if err != nil {
		return nil, err
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
	c.Collection, c.Pages = cmp.Or(c.Collection, id), cmp.Or(c.Pages, defaultPages)
	return p.retriever(c, id, p.config.Name+"/knowledge-base/"+id)
}

// retriever returns a retriever with a name in errors and budgets, such as
// "bedrock/knowledge-base/ABCDEFGHIJ".
func (p *Provider) retriever(c KnowledgeBase, id, name string) (*Retriever, error) {
	k := &Retriever{provider: p, config: c, id: id}
	var err error
	k.Retriever, err = passage.New(passage.Config{
		Name: name, Source: "bedrock:" + id, Collection: c.Collection, Pipeline: pipeline, Sharing: c.Sharing, Filter: c.Filter,
		Keep: c.Keep, Guard: c.Guard, Search: k.find, Check: k.check,
	})
	return k, err
}

// find makes the search of a request.
func (k *Retriever) find(ctx context.Context, in passage.Request) (passage.Found, error) {
	search := k.config.Search
	switch in.Query.Mode {
	case assay.ModeHybrid:
	case assay.ModeVector:
		search = SearchSemantic
	default:
		return passage.Found{}, fmt.Errorf("%s: knowledge bases cannot search in mode %q: %w", k.Model(), in.Query.Mode, assay.ErrInvalid)
	}
	vector, notes, err := k.vector(in.Filter, in.Query.Limit, search)
	if err != nil {
		return passage.Found{}, err
	}
	found, err := k.pages(ctx, &bedrockagentruntime.RetrieveInput{
		KnowledgeBaseId: &k.id, RetrievalQuery: &types.KnowledgeBaseQuery{Text: &in.Query.Text},
		RetrievalConfiguration: &types.KnowledgeBaseRetrievalConfiguration{VectorSearchConfiguration: vector},
		GuardrailConfiguration: k.config.Guardrail.retrieval(),
	}, in.Query.Limit)
	if err != nil {
		return passage.Found{}, err
	}
	out := passage.Found{Notes: notes}
	for _, r := range found.results {
		out.Passages = append(out.Passages, k.passage(r.Content, r.Location, r.Metadata, r.Score))
	}
	if found.intervened {
		out.Notes = append(out.Notes, k.Model()+": a guardrail intervened in the results")
	}
	if found.cut {
		out.Notes = append(out.Notes, fmt.Sprintf("%s: stopped after %d pages; there are more results", k.Model(), k.config.Pages))
	}
	return out, nil
}

// check returns assay.ErrInvalid if knowledge bases cannot apply a filter.
func (k *Retriever) check(f assay.Filter) error {
	filters := filterer{epochs: k.config.EpochKeys}
	_, err := filters.compile(f)
	return err
}

// vector returns the configuration of the vector search.
func (k *Retriever) vector(f assay.Filter, limit int, search SearchType) (*types.KnowledgeBaseVectorSearchConfiguration, []string, error) {
	filters := filterer{epochs: k.config.EpochKeys}
	filter, err := filters.compile(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", k.Model(), err)
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
	x, err := k.provider.exchange(ctx, k.Model())
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
