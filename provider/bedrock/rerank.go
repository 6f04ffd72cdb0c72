package bedrock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentruntime/types"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/tokencount"
)

// The limits of Rerank.
//
// Source: AWS, Amazon Bedrock API Reference, Rerank (sources), RerankTextDocument.
const (
	maxSources    = 1000
	maxRerankText = 32_000 // characters
)

type reranker struct {
	provider *Provider
	id       string
	name     string
}

// Reranker returns a reranking model by its ID ("cohere.rerank-v3-5:0", "amazon.rerank-v1:0") or
// ARN.
//
// Its scores are in [0, 1]. The models score each text independently of the others, so the scores
// of several requests, of at most 1,000 texts each, are on one scale.
func (p *Provider) Reranker(model string) llm.Reranker {
	return &reranker{p, model, p.config.Name + "/" + model}
}

// Model implements llm.Reranker.
func (r *reranker) Model() string { return r.name }

// Facts implements llm.Described. No facts are known.
func (r *reranker) Facts() llm.Facts { return llm.Facts{} }

// Rerank implements llm.Reranker.
func (r *reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	window := r.window()
	for i, text := range texts {
		n := tokencount.Estimate(query) + tokencount.Estimate(text)
		if n > window || utf8.RuneCountInString(text) > maxRerankText {
			return nil, &llm.TooLongError{Model: r.name, Text: i, Tokens: max(n, window+1), Limit: window}
		}
	}
	if utf8.RuneCountInString(query) > maxRerankText {
		return nil, &llm.Error{Model: r.name, Kind: llm.TooLong, Message: fmt.Sprintf("the query exceeds %d characters", maxRerankText)}
	}
	var scores []float64
	for len(scores) < len(texts) {
		batch := texts[len(scores):min(len(texts), len(scores)+maxSources)]
		made, err := r.batch(ctx, query, batch)
		if failed, ok := errors.AsType[*llm.Error](err); ok && failed.Kind == llm.TooLong {
			// Bedrock does not report which text it is. If any is too long, the longest is.
			i := longest(batch)
			return nil, &llm.TooLongError{Model: r.name, Text: len(scores) + i, Tokens: max(tokencount.Estimate(query)+tokencount.Estimate(batch[i]), window+1), Limit: window}
		}
		if err != nil {
			return nil, err
		}
		scores = append(scores, made...)
	}
	return scores, nil
}

// longest returns the index of the text with the most bytes.
func longest(texts []string) int {
	at := 0
	for i, text := range texts {
		if len(text) > len(texts[at]) {
			at = i
		}
	}
	return at
}

// window returns the token limit of the model for query and text. Cohere's model silently truncates
// longer input, so texts are measured by a cautious estimate before.
//
// Source: AWS, Amazon Bedrock User Guide, "Rerank 3.5", context window. No limit is documented for
// Amazon's reranker; the limit of characters per text is used instead.
func (r *reranker) window() int {
	if strings.HasPrefix(r.provider.foundation(r.id), "cohere.rerank") {
		return 4096
	}
	return maxRerankText
}

// batch scores the texts of one request.
func (r *reranker) batch(ctx context.Context, query string, texts []string) ([]float64, error) {
	in := &bedrockagentruntime.RerankInput{
		Queries: []types.RerankQuery{{Type: types.RerankQueryContentTypeText, TextQuery: &types.RerankTextDocument{Text: nonEmpty(query)}}},
		RerankingConfiguration: &types.RerankingConfiguration{
			Type: types.RerankingConfigurationTypeBedrockRerankingModel,
			BedrockRerankingConfiguration: &types.BedrockRerankingConfiguration{
				NumberOfResults: aws.Int32(int32(len(texts))),
			},
		},
	}
	estimate := 0
	for _, text := range texts {
		estimate += llm.EstimateTokens(query) + llm.EstimateTokens(text)
		in.Sources = append(in.Sources, types.RerankSource{
			Type: types.RerankSourceTypeInline,
			InlineDocumentSource: &types.RerankDocument{
				Type: types.RerankDocumentTypeText, TextDocument: &types.RerankTextDocument{Text: nonEmpty(text)},
			},
		})
	}
	scores := make([]float64, len(texts))
	seen := make([]bool, len(texts))
	for left := len(texts); left > 0; {
		page, err := r.page(ctx, in, assay.Usage{Calls: 1, InputTokens: estimate}, scores, seen)
		if err != nil {
			return nil, err
		}
		left -= page
		estimate = 0 // a further page of the same results
	}
	return scores, nil
}

// page makes a request, stores its scores and returns their number.
func (r *reranker) page(ctx context.Context, in *bedrockagentruntime.RerankInput, most assay.Usage, scores []float64, seen []bool) (int, error) {
	x, err := r.provider.exchange(ctx, r.name)
	if err != nil {
		return 0, err
	}
	defer x.End()
	if err := llm.Room(ctx, most); err != nil {
		return 0, err
	}
	defer llm.Report(ctx, most)
	in.RerankingConfiguration.BedrockRerankingConfiguration.ModelConfiguration = &types.BedrockRerankingModelConfiguration{
		ModelArn: aws.String(modelARN(x.session.Region, r.id)),
	}
	out, err := x.session.agent.Rerank(x.Context, in, func(o *bedrockagentruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return 0, x.Fail(err, func(code, message string) (llm.ErrorKind, string) {
			return explainModel(r.id, x.session.Region, code, message)
		})
	}
	for _, res := range out.Results {
		i, score := -1, math.NaN()
		if res.Index != nil && res.RelevanceScore != nil {
			i, score = int(*res.Index), float64(*res.RelevanceScore)
		}
		if i < 0 || i >= len(scores) || seen[i] || math.IsNaN(score) || math.IsInf(score, 0) {
			return 0, x.Errors.Fail(llm.BadReply, "a result for %d texts has no valid index or score, or repeats an index", len(scores))
		}
		scores[i], seen[i] = score, true
	}
	in.NextToken = out.NextToken
	if n := len(out.Results); n > 0 && (aws.ToString(in.NextToken) != "" || all(seen)) {
		return n, nil
	}
	return 0, x.Errors.Fail(llm.BadReply, "it did not score all %d texts", len(scores))
}

func all(seen []bool) bool {
	for _, ok := range seen {
		if !ok {
			return false
		}
	}
	return true
}

// nonEmpty returns text, or a blank for an empty one, which Bedrock rejects.
func nonEmpty(text string) *string {
	if text == "" {
		text = " "
	}
	return &text
}

// modelARN returns the ARN of a foundation model, given its ID or ARN.
func modelARN(region, model string) string {
	if strings.HasPrefix(model, "arn:") {
		return model
	}
	return foundationARN(region, model)
}
