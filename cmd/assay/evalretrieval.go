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
	"github.com/assay-rag/assay/eval"
)

// retrievalFlags are the flags of eval retrieval.
type retrievalFlags struct {
	evalFlags
	mode, fusion, graph, rerank string
}

func (a *app) evalRetrievalCommand() *cobra.Command {
	var f retrievalFlags
	cmd := &cobra.Command{
		Use:   "retrieval FOLDER...",
		Short: "Measure rankings on labelled sets in the BEIR layout",
		Long: `Retrieval embeds and indexes the passages of a labelled set, searches for each of
its questions, 100 deep, and prints how well the relevant passages rank:

  nDCG@10      how many are among the first ten and how far up; 1 is the best order
  MRR@10       one over the rank of the first relevant one, 0 beyond the tenth
  recall@10    the share of the relevant ones that is among the first ten
  recall@100   and among the first hundred
  all gold@10  the share of questions with every relevant one among the first ten

Each is a mean over the questions, ± half of the interval in which it would be for
95 of 100 sets of as many such questions (bootstrap). The last column is how much
more nDCG@10 a line has than the first, with its interval: where that does not hold
0, the difference is not one of chance.

The lines go from plain to what ask and search do by default:

  bm25                   words alone, by BM25
  text                   the same, the best ordered by relevance (--mode text)
  vector                 the encoder's vectors alone (--mode vector)
  hybrid                 words and vectors
  hybrid +graph          and passages that the best ones lead to
  hybrid +graph +rerank  and the best judged once more
  … +read                and the ten best of these read by the reader

With --mode, --fusion, --graph or --rerank there is one line: what a search does
with these, all else as by default. --mode hybrid is that of the default.

A FOLDER holds corpus.jsonl {_id, title, text}, queries.jsonl {_id, text} and the
judgements, query-id, corpus-id and score separated by tabs, in qrels.tsv or in
qrels/test.tsv, qrels/dev.tsv or qrels/train.tsv. Vectors are kept in a cache
folder, so that a set is encoded once; what was encoded before an interruption is
kept as well.`,
		Example: `  assay eval retrieval ./scifact
  assay eval retrieval ./scifact ./hotpotqa --json
  assay eval retrieval ./scifact --mode text --rerank off`,
		Args: needFolders,
		RunE: func(cmd *cobra.Command, folders []string) error { return a.evalRetrieval(cmd.Context(), folders, f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "what finds passages: `text|vector|hybrid`")
	flags.StringVar(&f.fusion, "fusion", "", "how words and vectors become one list: `weighted|rrf`")
	flags.StringVar(&f.graph, "graph", "", "follow what passages name to others: `on|off`")
	flags.StringVar(&f.rerank, "rerank", "", "judge the best once more: `on|off`")
	return cmd
}

func (a *app) evalRetrieval(ctx context.Context, folders []string, f retrievalFlags) error {
	if err := a.openEval(ctx, &f.evalFlags); err != nil {
		return err
	}
	rankings, err := f.rankings(f.embedder != nil)
	if err != nil {
		return err
	}
	if f.mode == "text" {
		f.embedder = nil // no vectors are needed
	}
	for i, folder := range folders {
		err := a.evalSet(folder, f.evalFlags, func(set eval.Set, parts eval.Parts) error {
			report, err := eval.Retrieval(ctx, set, parts, rankings)
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
func (f retrievalFlags) rankings(vectors bool) ([]eval.Ranking, error) {
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
			return nil, usagef("--%s %q is none of %s", flag.name, flag.value, strings.Join(flag.allowed, ", "))
		}
	}
	if f.mode == "" && f.fusion == "" && f.graph == "" && f.rerank == "" {
		return eval.Rankings(vectors, true), nil
	}
	r := eval.Ranking{Graph: f.graph != "off", Rerank: f.rerank != "off"}
	mode := f.mode
	switch {
	case mode == "" && !vectors:
		mode = "text"
	case mode == "":
		mode = "hybrid"
	case mode != "text" && !vectors:
		return nil, usagef("--mode %s needs vectors, and there is no encoder", mode)
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
	return []eval.Ranking{r}, nil
}

// writeRetrieval prints the table of a set.
func writeRetrieval(w io.Writer, r eval.RetrievalReport, again bool) error {
	var b strings.Builder
	if again {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s: %s, %s", r.Set, count(r.Queries, "question", "questions"), count(r.Passages, "passage", "passages"))
	if r.Model != "" {
		fmt.Fprintf(&b, ", vectors of %s", r.Model)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "; %s of something that is not in the set", count(r.Dropped, "judgement", "judgements"))
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	header := "ranking\tnDCG@10\tMRR@10\trecall@10\trecall@100\tall gold@10"
	if len(r.Rows) > 1 {
		header += "\tnDCG@10 beside " + r.Rows[0].Ranking
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
func writeNotes(b *strings.Builder, rows []eval.Row) {
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
		fmt.Fprintf(b, "and %s of searches; --json has them\n", count(len(notes)-most, "more note", "more notes"))
	}
}
