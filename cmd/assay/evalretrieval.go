package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
)

// retrievalFlags are the flags of eval retrieval.
type retrievalFlags struct {
	evalFlags
	mode, fusion, graph, rerank string

	bm25     assay.BM25
	coverage []int // percentages

	chunkers      []string
	size, overlap int // of chunks, in tokens; 0: the default
}

func (a *app) evalRetrievalCommand() *cobra.Command {
	var f retrievalFlags
	cmd := &cobra.Command{
		Use:   "retrieval FOLDER...",
		Short: "Measure rankings on labelled sets in the BEIR layout",
		Long: `Retrieval searches for each question of a labelled set and prints nDCG, MRR, recall and
the share of questions with all relevant passages, each with its 95% interval. The rows
go from BM25 alone to the default search; the last column compares them with the first.
With --mode, --fusion, --graph or --rerank there is one row, for the search they select.
--coverage measures the default search while only some passages have vectors.

--chunker compares chunkers: passages whose IDs differ only after the last "#" form one
document, and the figure is the share of the relevant passages' text that the best
chunks hold within a number of tokens.

A FOLDER has corpus.jsonl {_id, title, text}, queries.jsonl {_id, text} and judgements
(query-id, corpus-id, score) in qrels.tsv or qrels/test.tsv. Vectors are cached.`,
		Example: `  assay eval retrieval ./scifact ./hotpotqa --json
  assay eval retrieval ./scifact --mode text --k1 1.2 --b 0.75
  assay eval retrieval ./scifact --coverage 10,50,90
  assay eval retrieval ./manual --chunker all --chunk-size 300`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error { return a.evalRetrieval(cmd.Context(), folders, f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "search by `text|vector|hybrid`")
	flags.StringVar(&f.fusion, "fusion", "", "fuse the text and vector rankings by `weighted|rrf`")
	flags.StringVar(&f.graph, "graph", "", "follow entities to other passages: `on|off`")
	flags.StringVar(&f.rerank, "rerank", "", "rerank the best hits: `on|off`")
	flags.Float64Var(&f.bm25.K1, "k1", 0, "`k1` of BM25, above 0 to 10 (default 0.9)")
	flags.Float64Var(&f.bm25.B, "b", 0, "`b` of BM25, above 0 to 1 (default 0.4)")
	flags.IntSliceVar(&f.coverage, "coverage", nil, "measure with vectors for these percentages, as `10,50`")
	flags.StringSliceVar(&f.chunkers, "chunker", nil, "compare these `chunkers` with the default, or all")
	flags.IntVar(&f.size, "chunk-size", 0, "largest `tokens` of a chunk, with --chunker (default 200)")
	flags.IntVar(&f.overlap, "chunk-overlap", 0, "`tokens` that chunks repeat, with --chunker; -1: none (default 40)")
	return cmd
}

func (a *app) evalRetrieval(ctx context.Context, folders []string, f retrievalFlags) error {
	if err := a.openEval(ctx, &f.evalFlags); err != nil {
		return err
	}
	if err := f.bm25.Check(); err != nil {
		return usagef("%w", err)
	}
	if len(f.chunkers) > 0 {
		return a.evalChunkers(ctx, folders, f)
	}
	if f.size != 0 || f.overlap != 0 {
		return usagef("--chunk-size and --chunk-overlap need --chunker")
	}
	if len(f.coverage) > 0 {
		return a.evalCoverage(ctx, folders, f.evalFlags, f.coverage)
	}
	rankings, err := f.rankings(f.embedder != nil)
	if err != nil {
		return err
	}
	if f.mode == "text" {
		f.embedder = nil // no vectors are needed
	}
	for i, folder := range folders {
		err := a.evalSet(folder, f.evalFlags, func(set testset.Set, parts retrieval.Parts) error {
			report, err := retrieval.Run(ctx, set, parts, rankings)
			if err != nil {
				return err
			}
			if f.json {
				return json.NewEncoder(a.stdout).Encode(report)
			}
			return writeRetrieval(a.stdout, report, i > 0)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rankings returns the rankings that the flags select.
func (f retrievalFlags) rankings(vectors bool) ([]retrieval.Ranking, error) {
	for _, flag := range []struct {
		name, value string
		allowed     []string
	}{
		{"mode", f.mode, []string{"text", "vector", "hybrid"}},
		{"fusion", f.fusion, []string{"weighted", "rrf"}},
		{"graph", f.graph, []string{"on", "off"}},
		{"rerank", f.rerank, []string{"on", "off"}},
	} {
		if flag.value != "" && !slices.Contains(flag.allowed, flag.value) {
			return nil, usagef("--%s is %q, want one of %s", flag.name, flag.value, strings.Join(flag.allowed, ", "))
		}
	}
	if f.mode == "" && f.fusion == "" && f.graph == "" && f.rerank == "" {
		all := retrieval.Rankings(vectors, true)
		for i := range all {
			all[i].Parameters = f.bm25
		}
		return all, nil
	}
	r := retrieval.Ranking{Graph: f.graph != "off", Rerank: f.rerank != "off", Parameters: f.bm25}
	mode := f.mode
	switch {
	case mode == "" && !vectors:
		mode = "text"
	case mode == "":
		mode = "hybrid"
	case mode != "text" && !vectors:
		return nil, usagef("--mode %s needs an encoder, and none is available", mode)
	}
	if mode != "hybrid" {
		r.Mode = assay.Mode(mode)
	}
	r.Name = mode
	if f.fusion == "rrf" {
		r.Fusion, r.Name = assay.FusionRRF, r.Name+" by rrf"
	}
	if r.Graph {
		r.Name += " +graph"
	}
	if r.Rerank {
		r.Name += " +rerank"
	}
	return []retrieval.Ranking{r}, nil
}

// writeRetrieval prints the table of a set.
func writeRetrieval(w io.Writer, r retrieval.Report, again bool) error {
	var b strings.Builder
	if again {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s: %s, %s", r.Set, count(r.Queries, "question", "questions"), count(r.Passages, "passage", "passages"))
	if r.Model != "" {
		fmt.Fprintf(&b, ", vectors of %s", r.Model)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "; %s of passages or questions that are not in the set", count(r.Dropped, "judgement", "judgements"))
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	header := "ranking\tnDCG@10\tMRR@10\trecall@10\trecall@100\tall gold@10"
	if len(r.Rows) > 1 {
		header += "\tnDCG@10 against " + r.Rows[0].Ranking
	}
	fmt.Fprintln(table, header)
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s", row.Ranking,
			figure(row.NDCG10, row.Low.NDCG10, row.High.NDCG10), figure(row.MRR10, row.Low.MRR10, row.High.MRR10),
			figure(row.Recall10, row.Low.Recall10, row.High.Recall10), figure(row.Recall100, row.Low.Recall100, row.High.Recall100),
			figure(row.AllGold10, row.Low.AllGold10, row.High.AllGold10))
		if d := row.Against; d != nil {
			fmt.Fprintf(table, "\t%s", difference(*d))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeNotes(&b, r.Rows)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeNotes prints the most frequent notes of the searches.
func writeNotes(b *strings.Builder, rows []retrieval.Row) {
	const most = 3
	questions := map[string]int{}
	var notes []string
	for _, row := range rows {
		for _, n := range row.Notes {
			if questions[n.Note] == 0 {
				notes = append(notes, n.Note)
			}
			questions[n.Note] = max(questions[n.Note], n.Queries)
		}
	}
	slices.SortStableFunc(notes, func(a, b string) int { return questions[b] - questions[a] })
	for _, note := range notes[:min(len(notes), most)] {
		fmt.Fprintf(b, "note (%s): %s\n", count(questions[note], "question", "questions"), note)
	}
	if len(notes) > most {
		fmt.Fprintf(b, "and %s of searches; --json prints them\n", count(len(notes)-most, "more note", "more notes"))
	}
}
