package engine

import (
	"context"

	"github.com/assay-rag/assay"
)

// A CoverageReport counts the documents that a principal may see, and the vectors of their passages.
type CoverageReport struct {
	Documents int    `json:"documents"`
	Failed    int    `json:"failed"`            // that could not be parsed, see Session.FailedDocuments
	Model     string `json:"model,omitempty"`   // the wanted encoder; empty: none
	Chunks    int    `json:"chunks"`            // that can have a vector; 0 without an encoder
	Embedded  int    `json:"embedded"`          // that have one
	Problem   string `json:"problem,omitempty"` // why no vectors can be made now
}

// Coverage reports how far the documents that the principal may see have vectors.
func (s *Session) Coverage(ctx context.Context) (CoverageReport, error) {
	return call(ctx, s, "Coverage", func(c *sessionCall) (CoverageReport, error) {
		access := c.principal.Access()
		report := CoverageReport{}
		visible, hidden := map[string]bool{}, false
		for d, err := range c.engine.content.Documents(ctx) {
			if err != nil {
				return report, err
			}
			if access.Allows(d.Collection, d.ACL) {
				visible[d.ID] = true
			} else {
				hidden = true
			}
		}
		report.Documents = len(visible)
		failed, err := c.engine.FailedDocuments(ctx, c.principal)
		if err != nil {
			return report, err
		}
		report.Failed = len(failed)
		chosen, err := c.engine.encoderSelector.selection(ctx)
		if err != nil || chosen.wanted == "" {
			return report, err
		}
		report.Model = chosen.wanted
		if chosen.problem != nil {
			report.Problem = "no vectors can be made now" // the reason may name files of the machine
		}
		if !hidden {
			n, err := c.engine.content.Coverage(ctx, chosen.wanted)
			report.Chunks, report.Embedded = n.Chunks, n.Embedded
			return report, err
		}
		err = c.engine.countVectors(ctx, visible, &report)
		return report, err
	})
}

// countVectors counts the chunks of some documents and those with a vector. Unlike
// store.Content.Coverage it reads all of them.
func (e *Engine) countVectors(ctx context.Context, documents map[string]bool, report *CoverageReport) error {
	chunks := map[string]bool{}
	for change, err := range e.content.Changes(ctx, 0) {
		if err != nil {
			return err
		}
		if !documents[change.ID] {
			continue
		}
		for _, chunk := range change.Chunks {
			if chunk.Kind != assay.ChunkSection {
				chunks[chunk.ID] = true
			}
		}
	}
	report.Chunks = len(chunks)
	for v, err := range e.content.Vectors(ctx, report.Model, 0) {
		if err != nil {
			return err
		}
		if chunks[v.Chunk] {
			report.Embedded++
		}
	}
	return nil
}
