package server

import (
	"context"
	"net/http"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/job"
)

// evaluationRoutes measure answers to labelled questions.
func evaluationRoutes() []Route {
	return []Route{
		route("POST", "/api/v1/evaluations", "evaluations.start", "StartEvaluation", "Ask a labelled set of questions and measure the answers, in the background", startEvaluation).with(func(r *Route) {
			r.Status, r.MaxBody = http.StatusAccepted, maxEvaluation
		}),
		route("GET", "/api/v1/evaluations", "evaluations.list", "Evaluations", "List evaluations, newest first",
			func(ctx context.Context, s *engine.Session, _ none) (evaluationList, error) {
				all, err := s.Evaluations(ctx)
				return evaluationList{all}, err
			}),
		route("GET", "/api/v1/evaluations/{id}", "evaluations.show", "Evaluation", "Show an evaluation with its progress or its result",
			func(ctx context.Context, s *engine.Session, in evaluationIn) (engine.Evaluation, error) {
				return s.Evaluation(ctx, in.ID)
			}),
		route("POST", "/api/v1/evaluations/{id}/cancel", "evaluations.cancel", "CancelEvaluation", "Cancel an evaluation",
			func(ctx context.Context, s *engine.Session, in evaluationIn) (none, error) {
				return none{}, s.CancelEvaluation(ctx, in.ID)
			}),
	}
}

// maxEvaluation is the most bytes of a set of questions.
const maxEvaluation = 16 << 20

type evaluationList struct {
	Evaluations []engine.Evaluation `json:"evaluations"`
}

type evaluationIn struct {
	ID string `path:"id"`
}

type startEvaluationIn struct {
	Body job.Spec `body:"application/json"`
}

func startEvaluation(ctx context.Context, s *engine.Session, in startEvaluationIn) (engine.Evaluation, error) {
	return job.Start(ctx, s, in.Body)
}
