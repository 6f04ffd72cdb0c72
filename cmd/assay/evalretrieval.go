package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/llm"
)

// retrievalFlags are the flags of eval retrieval.
type retrievalFlags struct {
	json                        bool
	mode, fusion, graph, rerank string
	cache                       string
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return hinted{usagef("no FOLDER of a labelled set"), "see: " + cmd.CommandPath() + " --help"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, folders []string) error { return a.evalRetrieval(cmd.Context(), folders, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each set, a line each")
	flags.StringVar(&f.mode, "mode", "", "what finds passages: text, vector or hybrid")
	flags.StringVar(&f.fusion, "fusion", "", "how words and vectors become one list: weighted or rrf")
	flags.StringVar(&f.graph, "graph", "", "on or off: follow what passages name to others")
	flags.StringVar(&f.rerank, "rerank", "", "on or off: judge the best once more")
	flags.StringVar(&f.cache, "cache", "", "the `folder` that keeps vectors (default: assay/eval in the user's cache folder)")
	return cmd
}

func (a *app) evalRetrieval(ctx context.Context, folders []string, f retrievalFlags) error {
	embedder, err := a.evalEmbedder(ctx, f)
	if err != nil {
		return err
	}
	rankings, err := f.rankings(embedder != nil)
	if err != nil {
		return err
	}
	if f.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return hinted{fmt.Errorf("find the user's cache folder: %w", err), "name one with --cache"}
		}
		f.cache = filepath.Join(cache, "assay", "eval")
	}
	for i, folder := range folders {
		shown := a.progress()
		shown.update("reading %s", folder)
		set, err := eval.ReadSet(folder)
		if err != nil {
			shown.clear()
			return err
		}
		report, err := eval.Retrieval(ctx, set, eval.Parts{
			Embedder: embedder, CacheDir: f.cache,
			Progress: func(p eval.Progress) { shown.update("%s", retrievalProgress(p)) },
		}, rankings)
		shown.clear()
		if err != nil {
			return err
		}
		if f.json {
			err = json.NewEncoder(a.stdout).Encode(report)
		} else {
			err = writeRetrieval(a.stdout, report, i > 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rankings are those that the flags ask for.
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
		return eval.Rankings(vectors), nil
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

// retrievalProgress says how far an evaluation is, with the rate and what is left
// of it once both can be told.
func retrievalProgress(p eval.Progress) string {
	s := fmt.Sprintf("%s: %s, %d of %d", p.Set, p.What, p.Done, p.All)
	if p.Done > 0 && p.Elapsed > time.Second {
		rate := float64(p.Done) / p.Elapsed.Seconds()
		left := time.Duration(float64(p.All-p.Done) / rate * float64(time.Second))
		s += fmt.Sprintf(" (%.0f a second, %s left)", rate, left.Round(time.Second))
	}
	return s
}

// writeRetrieval prints a set's table.
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
	var notes []string
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s", row.Ranking,
			figure(row.NDCG10, row.Low.NDCG10, row.High.NDCG10), figure(row.MRR10, row.Low.MRR10, row.High.MRR10),
			figure(row.Recall10, row.Low.Recall10, row.High.Recall10), figure(row.Recall100, row.Low.Recall100, row.High.Recall100),
			figure(row.AllGold10, row.Low.AllGold10, row.High.AllGold10))
		if d := row.Against; d != nil {
			fmt.Fprintf(table, "\t%+.3f (%+.3f to %+.3f)", d.NDCG10, d.Low, d.High)
		}
		fmt.Fprintln(table)
		for _, note := range row.Notes {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// figure writes a mean with half of its interval.
func figure(mean, low, high float64) string {
	return strings.Replace(fmt.Sprintf("%.3f ±%.3f", mean, (high-low)/2), "±0.", "±.", 1)
}

// evalEmbedder opens the encoder whose vectors are measured; nil: there is none.
func (a *app) evalEmbedder(context.Context, retrievalFlags) (llm.Embedder, error) { return nil, nil }
