package review

import (
	"context"
	"fmt"
	"math"

	"github.com/assay-rag/assay/llm"
)

// A TopicScorer returns how likely a question and its answer belong to each topic, in [0, 1].
type TopicScorer func(ctx context.Context, topics []string) ([]float64, error)

// DefaultTopicThreshold is the least score of a topic that matches. Like the weights below it was
// fitted to testdata/topics_fit.json, where a topic that is missed costs five false alarms.
const DefaultTopicThreshold = 0.17

// Weights of TopicScore: a logistic regression on the logits of two judgements of the reader.
const (
	weightRelevance  = 1.259
	weightEntailment = 1.768
	weightBias       = 7.325
)

// Topics returns a scorer by a reader for a question and its answer. The reader judges how relevant
// the text is to the topic, and whether the text says that it is about the topic.
func Topics(reader llm.Reader, question, answer string) TopicScorer {
	text := llm.Excerpt{Text: question + " " + answer}
	return func(ctx context.Context, topics []string) ([]float64, error) {
		scores := make([]float64, len(topics))
		for i, topic := range topics {
			read, err := reader.Read(ctx, topic, []llm.Excerpt{text})
			if err != nil {
				return nil, err
			}
			entailed, err := reader.Entail(ctx, []llm.ClaimPair{{Claim: "This is about " + topic + ".", Passage: text}})
			if err != nil {
				return nil, err
			}
			if len(read) != 1 || len(entailed) != 1 {
				return nil, fmt.Errorf("the reader %s gave %d and %d judgements of one text", reader.Model(), len(read), len(entailed))
			}
			z := weightRelevance*logit(read[0].Relevance) + weightEntailment*logit(entailed[0].Supported) + weightBias
			scores[i] = 1 / (1 + math.Exp(-z))
		}
		return scores, nil
	}
}

// logit returns the log-odds of a probability, which is kept from 0 and 1.
func logit(p float64) float64 {
	const least = 1e-6
	return math.Log(max(p, least) / max(1-p, least))
}
