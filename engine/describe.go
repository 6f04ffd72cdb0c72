package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// describeStrategy is the strategy in the request of a run that describes images. It answers no
// question, so such a run cannot be resumed or replayed.
const describeStrategy = "describe-images"

// describeQuestion stands for the question of such a run in lists.
const describeQuestion = "describe the images of ingested documents"

// A describer has a model describe the images of documents. Its calls are steps of one run, which
// begins with the first. It is safe for concurrent use; calls are made one at a time.
type describer struct {
	e      *Engine
	model  llm.Model
	budget assay.Budget

	mu     sync.Mutex
	known  map[string]string // description by image, from earlier runs and this one; "" is decorative
	run    *run.Run          // nil before the first call
	lease  store.Lease
	images int
	report ingest.ImageReport
}

// newDescriber returns a describer for the generator's model. The error is assay.ErrInvalid if no
// model is the generator.
func (e *Engine) newDescriber(ctx context.Context, budget assay.Budget) (*describer, error) {
	model := e.screened(e.config.Models).Roles[role.GeneratorRole]
	if model == nil {
		return nil, fmt.Errorf("images are described by the model of the generator, and none is configured: %w", assay.ErrInvalid)
	}
	d := &describer{e: e, model: model, budget: budget, report: ingest.ImageReport{Model: model.Model()}}
	earlier, err := e.earlierDescriptions(ctx)
	if d.known = earlier[d.identity()].text; d.known == nil {
		d.known = map[string]string{}
	}
	return d, err
}

// identity returns the ingest.DescriberID.
func (d *describer) identity() string {
	return ingest.DescriberID(d.model.Model(), prompted.DescriberPrompt())
}

// isDescribing reports whether a run describes images and answers no question.
func isDescribing(r assay.Run) bool {
	var request struct{ Strategy string }
	return json.Unmarshal(r.Request, &request) == nil && request.Strategy == describeStrategy
}

// A describeInput is the input of the step that describes an image.
type describeInput struct {
	URI    string `json:"uri"`
	Page   int    `json:"page,omitempty"`
	Image  string `json:"image"` // SHA-256
	Prompt string `json:"prompt"`
}

// A describeOutput is the output of that step.
type describeOutput struct {
	Text     string `json:"text"`               // "": the image is decorative, or the reply is unusable
	Unusable string `json:"unusable,omitempty"` // why no reply of the model could be used
}

// madeDescriptions are the descriptions that a model made with one prompt, by image. "" means that the
// image is decorative.
type madeDescriptions struct {
	model string
	text  map[string]string
}

// earlierDescriptions returns the descriptions in the journals of earlier runs, by
// ingest.DescriberID.
func (e *Engine) earlierDescriptions(ctx context.Context) (map[string]madeDescriptions, error) {
	made := map[string]madeDescriptions{}
	runs, err := e.runs.List(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read earlier descriptions: %w", err)
	}
	for _, r := range slices.Backward(runs) { // the newest description counts
		if !isDescribing(r) {
			continue
		}
		records, err := e.runs.Records(ctx, r.ID)
		if errors.Is(err, assay.ErrNotFound) {
			continue // deleted after it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("read earlier descriptions in run %s: %w", r.ID, err)
		}
		for _, rec := range records {
			var in describeInput
			var out describeOutput
			isDescription := strings.HasSuffix(rec.Path, "/describe") && rec.Error == nil
			if !isDescription || json.Unmarshal(rec.Input, &in) != nil || json.Unmarshal(rec.Output, &out) != nil || out.Unusable != "" {
				continue
			}
			id := ingest.DescriberID(rec.Model, in.Prompt)
			if made[id].text == nil {
				made[id] = madeDescriptions{rec.Model, map[string]string{}}
			}
			made[id].text[in.Image] = out.Text
		}
	}
	return made, nil
}

// redescriber returns a function for ingest.Options.Redescribe. It reads the journals at its first
// use.
func (e *Engine) redescriber() func(string) ingest.DescribeFunc {
	var mu sync.Mutex
	var earlier map[string]madeDescriptions
	read := func(ctx context.Context) (_ map[string]madeDescriptions, err error) {
		mu.Lock()
		defer mu.Unlock()
		if earlier == nil {
			earlier, err = e.earlierDescriptions(ctx)
		}
		return earlier, err
	}
	return func(id string) ingest.DescribeFunc {
		return func(ctx context.Context, _ string, doc parse.Document) (parse.Document, bool, error) {
			all, err := read(ctx)
			if err != nil {
				return doc, false, err
			}
			complete := true
			var descriptions []parse.Description
			for i, img := range doc.Images {
				text, ok := all[id].text[imageKey(img)]
				complete = complete && ok
				if text != "" {
					descriptions = append(descriptions, parse.Description{Image: i, Text: text, Model: all[id].model})
				}
			}
			return withDescriptions(doc, descriptions), complete, nil
		}
	}
}

// imageKey identifies an image by its bytes.
func imageKey(img parse.Image) string {
	sum := sha256.Sum256(img.Data)
	return hex.EncodeToString(sum[:])
}

// withDescriptions returns doc with descriptions and without the images.
func withDescriptions(doc parse.Document, descriptions []parse.Description) parse.Document {
	out := parse.Describe(doc, descriptions)
	out.Images = nil
	return out
}

// describe is an ingest.DescribeFunc. Images that cannot be described are counted in the report. The
// error is ctx's or that of the store.
func (d *describer) describe(ctx context.Context, uri string, doc parse.Document) (parse.Document, bool, error) {
	var descriptions []parse.Description
	complete := true
	for i, img := range doc.Images {
		text, done, err := d.image(ctx, uri, doc, img)
		if err != nil {
			return doc, false, err
		}
		complete = complete && done
		if text != "" {
			descriptions = append(descriptions, parse.Description{Image: i, Text: text, Model: d.model.Model()})
		}
	}
	return withDescriptions(doc, descriptions), complete, nil
}

// image returns the description of an image, or "". Done is false if the image is left for another
// ingest.
func (d *describer) image(ctx context.Context, uri string, doc parse.Document, img parse.Image) (text string, done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := imageKey(img)
	if text, ok := d.known[key]; ok {
		d.report.Reused++
		return text, true, nil
	}
	if d.report.Problem != "" {
		d.report.Missing++
		return "", false, nil
	}
	if err := d.begin(ctx); err != nil {
		return "", false, err
	}
	in := describeInput{URI: uri, Page: img.Page, Image: key, Prompt: prompted.DescriberPrompt()}
	step := run.Step{Name: "describe", Kind: assay.StepRole, Model: d.model.Model()}
	scope := d.run.Scope().Sub("image", d.images)
	d.images++
	out, err := run.Group(ctx, scope, step, in, func(ctx context.Context, s run.Scope, _ describeInput) (describeOutput, error) {
		text, outcome, err := prompted.Describe(ctx, strategy.CallerIn(s), d.model, prompted.Figure{
			Image: llm.Image{Type: img.Type, Data: img.Data}, Document: doc.Title, Caption: img.Caption,
			Language: doc.Metadata[assay.MetaLanguage].String,
		})
		return describeOutput{Text: text, Unusable: outcome.Failure}, err
	})
	d.report.Usage = d.run.Scope().Spent()
	err = d.count(ctx, key, out, err)
	return d.known[key], d.report.Problem == "", err
}

// count records the result of a call. A failure of the model ends the descriptions, because the next
// call would most likely fail too; a reply that cannot be used costs only its image.
func (d *describer) count(ctx context.Context, key string, out describeOutput, err error) error {
	_, overBudget := run.StopReason(err)
	switch {
	case err == nil && out.Text == "":
		d.report.Skipped++
		d.known[key] = ""
	case err == nil:
		d.report.Described++
		d.known[key] = out.Text
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, assay.ErrQuota):
		d.report.Missing++
		d.report.Problem = err.Error()
	case overBudget:
		d.report.Missing++
		d.report.Problem = "the budget for descriptions is spent"
	case errors.Is(err, assay.ErrUnavailable):
		d.report.Missing++
		d.report.Problem = err.Error()
	default:
		return fmt.Errorf("describe an image: %w", err)
	}
	return nil
}

// begin creates the run.
func (d *describer) begin(ctx context.Context) error {
	if d.run != nil {
		return nil
	}
	request, err := journal.Canonical(map[string]any{"strategy": describeStrategy, "budget": d.budget})
	if err != nil {
		return err
	}
	r := assay.Run{
		ID: d.e.config.NewID(), Principal: assay.Local(), Question: describeQuestion,
		Request: request, State: assay.RunActive, Created: d.e.config.Now().UTC(),
	}
	if d.lease, err = d.e.runs.Create(ctx, r); err != nil {
		return fmt.Errorf("describe images: %w", err)
	}
	d.report.Run = r.ID
	d.run, err = run.New(run.Config{Run: r.ID, Journal: d.lease, Budget: d.budget, Ledger: runLedger{d.e, r.Principal, d.lease}, Now: d.e.config.Now})
	return err
}

// close ends the run and returns the report.
func (d *describer) close(ctx context.Context) (ingest.ImageReport, error) {
	if d.run == nil {
		return d.report, nil
	}
	answer := d.answer()
	state, text := assay.RunDone, ""
	if err := errors.Join(d.run.Finish(), ctx.Err()); err != nil {
		state, text = assay.RunFailed, err.Error()
	}
	ended := d.lease.Finish(context.WithoutCancel(ctx), state, &answer, text)
	return d.report, errors.Join(ended, d.lease.Close())
}

// answer returns the report in the form that a run's end has.
func (d *describer) answer() assay.Answer {
	r := d.report
	a := assay.Answer{
		Status: assay.Answered, Stop: assay.StopSufficient, Question: describeQuestion, Strategy: describeStrategy, Run: r.Run, Usage: r.Usage,
		Text:   fmt.Sprintf("%s described, %d without a description, %d left.", images(r.Described), r.Skipped, r.Missing),
		Claims: []assay.Claim{}, Citations: []assay.Citation{}, Missing: []assay.Gap{}, Searched: []assay.Searched{}, Closest: []assay.Closest{},
	}
	if r.Missing > 0 {
		a.Status, a.Justification = assay.Incomplete, r.Problem
	}
	return a
}

func images(n int) string {
	if n == 1 {
		return "1 image"
	}
	return fmt.Sprintf("%d images", n)
}
