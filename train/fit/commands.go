package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
)

// newTable returns a table that aligns its columns.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func calibrateFlags(flags *flag.FlagSet) fitter {
	out := flags.String("out", "", "write the model to this `file`")
	return func(ctx context.Context, w io.Writer, sets []testset.Set, parts retrieval.Parts) error {
		cal, err := Calibrate(ctx, sets, parts)
		if err != nil {
			return err
		}
		if err := writeModel(*out, cal.Model); err != nil {
			return err
		}
		return writeCalibration(w, cal)
	}
}

// writeCalibration prints the figures of the models that were fitted without a set on that set.
func writeCalibration(w io.Writer, cal Calibration) error {
	table := newTable(w)
	fmt.Fprintln(table, "left out\tby\tauc\tbrier\taccepted\trefused\trefused_near\tbm25 ndcg@10\trelevance ndcg@10")
	row := func(set, by string, j Judgement) {
		fmt.Fprintf(table, "%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f", set, by, j.AUC, j.Brier, j.Accepted, j.Refused, j.RefusedNear)
	}
	for _, s := range cal.Sets {
		row(s.Set, "words", s.Judgement)
		fmt.Fprintf(table, "\t%.3f\t%.3f\n", s.BM25NDCG10, s.RelevanceNDCG10)
		if s.Vectors != nil {
			row("", "words and vectors", *s.Vectors)
			fmt.Fprintln(table)
		}
	}
	return table.Flush()
}

func rankFlags(flags *flag.FlagSet) fitter {
	relevance := flags.String("relevance", "", "write the relevance model to this `file`")
	reranker := flags.String("reranker", "", "write the reranker to this `file`")
	return func(ctx context.Context, w io.Writer, sets []testset.Set, parts retrieval.Parts) error {
		t, err := Train(ctx, sets, parts)
		if err != nil {
			return err
		}
		if err := writeModel(*relevance, t.Calibration.Model); err != nil {
			return err
		}
		if err := writeModel(*reranker, t.Model); err != nil {
			return err
		}
		return writeLeftOut(ctx, w, t, parts)
	}
}

// writeLeftOut searches each set with the models that were fitted without it, and prints the figures.
func writeLeftOut(ctx context.Context, w io.Writer, t Training, parts retrieval.Parts) error {
	table := newTable(w)
	fmt.Fprintln(table, "left out\tbridge\twithout vectors\tranking\tnDCG@10\trecall@100\tall gold@10")
	for _, l := range t.LeftOut {
		own, err := l.Parts(parts)
		if err != nil {
			return err
		}
		report, err := retrieval.Run(ctx, l.Set, own, retrieval.Rankings(parts.Embedder != nil, false))
		if err != nil {
			return err
		}
		for _, row := range report.Rows {
			fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%s\t%.3f\t%.3f\t%.3f\n", report.Set, l.Rerank.Vector[1], l.Rerank.Words[1],
				row.Ranking, row.NDCG10, row.Recall100, row.AllGold10)
		}
	}
	return table.Flush()
}

func readFlags(flags *flag.FlagSet) fitter {
	queries := flags.Int("questions", 100, "use at most `n` questions of each set")
	return func(ctx context.Context, w io.Writer, sets []testset.Set, parts retrieval.Parts) error {
		if *queries < 1 {
			return fmt.Errorf("%w: -questions %d is less than 1", errUsage, *queries)
		}
		fit, err := FitReading(ctx, sets, parts, *queries)
		if err != nil {
			return err
		}
		return writeReading(w, fit)
	}
}

// writeReading prints nDCG@10 of each set by the weight of the reader; see retrieve.ReadWeight.
func writeReading(w io.Writer, fit ReadingFit) error {
	table := newTable(w)
	fmt.Fprint(table, "set\tquestions\tothers choose")
	for _, weight := range fit.Weights {
		fmt.Fprintf(table, "\t%.2f", weight)
	}
	fmt.Fprintln(table)
	for _, s := range fit.Sets {
		fmt.Fprintf(table, "%s\t%d\t%.2f", s.Set, s.Queries, s.LeftOut)
		for _, x := range s.NDCG10 {
			fmt.Fprintf(table, "\t%.3f", x)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintf(table, "best of all\t\t%.2f\n", fit.Best)
	return table.Flush()
}

func answerabilityFlags(flags *flag.FlagSet) fitter {
	out := flags.String("out", "", "write the model to this `file`")
	return func(ctx context.Context, w io.Writer, sets []testset.Set, parts retrieval.Parts) error {
		fit, err := FitAnswerability(ctx, sets, parts)
		if err != nil {
			return err
		}
		if err := writeCompact(*out, fit.Model); err != nil {
			return err
		}
		table := newTable(w)
		fmt.Fprintln(table, "left out\tquestions\tAUC\tECE\tright at 5% false\tat\tas asked: false\tright")
		for _, s := range fit.Sets {
			fmt.Fprintf(table, "%s\t%d\t%.3f\t%.3f\t%.1f%%\t%.2f\t%.1f%%\t%.1f%%\n", s.Set, s.Questions, s.AUC, s.ECE,
				100*s.AtMostFalse.Right, s.AtMostFalse.Threshold, 100*s.AtDefault.False, 100*s.AtDefault.Right)
		}
		return table.Flush()
	}
}
