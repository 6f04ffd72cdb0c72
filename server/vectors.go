package server

import (
	"context"
	"reflect"
	"time"

	"github.com/assay-rag/assay/engine"
)

// vectorRoutes are about the vectors of documents.
func vectorRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/vectors", "vectors.show", "Vectors", "Show the encoder and the coverage of its vectors",
			func(ctx context.Context, s *engine.Session, _ none) (engine.VectorStatus, error) {
				return s.Vectors(ctx)
			}),
		raw("POST", "/api/v1/vectors/embed", "vectors.embed", "Embed", "Make the missing vectors", embedMissing).with(func(r *Route) {
			r.Out, r.Stream = reflect.TypeFor[engine.VectorReport](), true
			r.Events = eventsOf[embedEvent]()
		}),
		route("PUT", "/api/v1/vectors/encoder", "vectors.use", "UseEncoder", "Choose the encoder", useEncoder),
	}
}

// An embedEvent is the data of an event of an embedding: "progress" or, at the end, "report".
type embedEvent struct {
	Progress *embedProgress       `json:"progress,omitempty"`
	Report   *engine.VectorReport `json:"report,omitempty"`
}

// An embedProgress is how far an embedding is.
type embedProgress struct {
	Model  string        `json:"model"`
	Stored int           `json:"stored"`           // vectors so far
	Left   int           `json:"left"`             // at most
	Rate   float64       `json:"rate,omitempty"`   // vectors per second
	ETA    time.Duration `json:"eta_ns,omitempty"` // until all are stored at that rate
}

// embedMissing makes the missing vectors. If the client leaves, those that are made are kept.
func embedMissing(x *exchange, _ none) error {
	if x.media != typeEvents {
		report, err := x.session.Embed(x.r.Context(), nil)
		if err != nil {
			return err
		}
		return x.reply(report)
	}
	return x.stream(func(yield func(message, error) bool) {
		progress(x.r.Context(), yield, func(ctx context.Context, send func(message)) error {
			report, err := x.session.Embed(ctx, func(p engine.EmbedProgress) {
				send(message{event: "progress", data: embedEvent{Progress: &embedProgress{p.Model, p.Stored, p.Left, p.Rate, p.ETA}}})
			})
			if err == nil {
				send(message{event: "report", data: embedEvent{Report: &report}})
			}
			return err
		})
	})
}

type useEncoderIn struct {
	Body encoderChoice `body:"application/json"`
}

// An encoderChoice names an encoder.
type encoderChoice struct {
	Name   string `json:"name"`             // empty: the default
	Source string `json:"source,omitempty"` // where it came from, for display
}

func useEncoder(ctx context.Context, s *engine.Session, in useEncoderIn) (none, error) {
	return none{}, s.UseEncoder(ctx, in.Body.Name, in.Body.Source)
}
