package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/chunk"
)

// chunkerOptions returns the options of the chunkers that --chunker names, the default first. "all"
// leaves out the one that needs an encoder if there is none.
func (f retrievalFlags) chunkerOptions() ([]chunk.Options, error) {
	names := f.chunkers
	if len(names) == 1 && names[0] == "all" {
		names = nil
		for _, c := range chunk.Chunkers() {
			if c.Name != chunk.Semantic || f.embedder != nil {
				names = append(names, c.Name)
			}
		}
	}
	options := []chunk.Options{{TargetTokens: f.size, OverlapTokens: f.overlap}}
	for _, name := range names {
		if name != chunk.Structure {
			options = append(options, chunk.Options{Chunker: name, TargetTokens: f.size, OverlapTokens: f.overlap})
		}
	}
	for _, o := range options {
		if err := o.Check(); err != nil {
			return nil, usagef("%w", err)
		}
		if o.Chunker == chunk.Semantic && f.embedder == nil {
			return nil, usagef("--chunker semantic needs an encoder, and none is available")
		}
	}
	return options, nil
}

// evalChunkers compares chunkers on labelled sets.
func (a *app) evalChunkers(ctx context.Context, folders []string, f retrievalFlags) error {
	if f.mode == "text" {
		f.embedder = nil // no vectors are needed
	}
	options, err := f.chunkerOptions()
	if err != nil {
		return err
	}
	for i, folder := range folders {
		err := a.evalSet(folder, f.evalFlags, func(set testset.Set, parts retrieval.Parts) error {
			report, err := retrieval.Chunkers(ctx, set, parts, options)
			if err != nil {
				return err
			}
			if f.json {
				return json.NewEncoder(a.stdout).Encode(report)
			}
			return writeChunkers(a.stdout, report, i > 0)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeChunkers prints the table of a set.
func writeChunkers(w io.Writer, r retrieval.ChunkerReport, again bool) error {
	var b strings.Builder
	if again {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s: %s, %s", r.Set, count(r.Queries, "question", "questions"), count(r.Documents, "document", "documents"))
	if r.Model != "" {
		fmt.Fprintf(&b, ", vectors of %s", r.Model)
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	header := "chunker\tchunks\ttokens"
	for _, budget := range retrieval.Budgets {
		header += fmt.Sprintf("\trecall in %d tokens", budget)
	}
	last := retrieval.Budgets[len(retrieval.Budgets)-1]
	fmt.Fprintf(table, "%s\tin %d against %s\n", header, last, r.Rows[0].Chunker)
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%d\t%.0f", row.Chunker, row.Chunks, row.Tokens)
		for _, recall := range row.Recall {
			fmt.Fprintf(table, "\t%s", figure(recall.Mean, recall.Low, recall.High))
		}
		if d := row.Recall[len(row.Recall)-1].Against; d != nil {
			fmt.Fprintf(table, "\t%+.3f [%+.3f, %+.3f]", d.Mean, d.Low, d.High)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
