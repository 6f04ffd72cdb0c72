package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/starter"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/role"
)

// initFlags are the flags of eval init.
type initFlags struct {
	out        string
	questions  int
	lacking    float64
	local, yes bool
}

func (a *app) evalInitCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first set of questions about your documents, for you to correct",
		Long: `Init writes questions about the documents of the store, or of --docs PATH. Each has its
answer and the passage that contains it. Some are questions that the documents do not
answer. If a generator model is configured, it writes the questions; otherwise, and with
--local, they are derived from the grammar of sentences.

Treat the questions as a draft: correct each, delete useless ones, add those that your
users ask, and run assay eval FILE. An existing file is not overwritten.`,
		Example: `  assay eval init --docs ./handbook --questions 100 --out handbook.jsonl
  assay eval handbook.jsonl --docs ./handbook`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.evalInit(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "questions.jsonl", "write to this `file`; - is standard output")
	flags.IntVar(&f.questions, "questions", 50, "write `n` questions, or as many as the documents allow")
	flags.Float64Var(&f.lacking, "unanswerable", 0.2, "`share` of questions that the documents do not answer")
	flags.BoolVar(&f.local, "local", false, "call no language model")
	flags.BoolVar(&f.yes, "yes", false, "call a paid model without asking for confirmation")
	return cmd
}

func (a *app) evalInit(ctx context.Context, f initFlags) error {
	if f.questions < 1 {
		return usagef("--questions %d is less than 1", f.questions)
	}
	if f.lacking < 0 || f.lacking >= 1 {
		return usagef("--unanswerable %v is outside [0, 1)", f.lacking)
	}
	shown := a.progress()
	defer shown.clear()
	e, err := a.openToAsk(ctx, shown, searching, false)
	if err != nil {
		return err
	}
	defer e.Close()
	options := starter.Options{Questions: f.questions, Unanswerable: f.lacking}
	if f.lacking == 0 {
		options.Unanswerable = -1
	}
	if options.Writer, err = a.questionWriter(ctx, f, shown); err != nil {
		return err
	}
	shown.update("reading the documents")
	cases, err := starter.Make(ctx, e.Entries(ctx, assay.Local()), options)
	if err != nil {
		return err
	}
	shown.clear()
	if len(cases) == 0 {
		return hinted{fmt.Errorf("no question could be derived from these documents"), "configure a language model to write them (docs/models.md)"}
	}
	return a.writeCases(f, cases)
}

// writeCases writes a set and prints how to use it.
func (a *app) writeCases(f initFlags, cases []testset.Case) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	unanswerable := 0
	for _, c := range cases {
		if c.Unanswerable {
			unanswerable++
		}
		if err := encoder.Encode(c); err != nil {
			return err
		}
	}
	if len(cases) < f.questions {
		fmt.Fprintf(a.stderr, "%d of %d questions: the documents allow no more\n", len(cases), f.questions)
	}
	if f.out == "-" {
		_, err := io.Copy(a.stdout, &lines)
		return err
	}
	if err := writeNew(f.out, lines.Bytes()); err != nil {
		return err
	}
	command := "assay eval " + shellQuote(filepath.ToSlash(f.out))
	for _, d := range a.docs {
		command += " --docs " + shellQuote(d)
	}
	fmt.Fprintf(a.stdout, "%s written to %s, %d of them unanswerable; correct them, then: %s\n",
		count(len(cases), "question", "questions"), shortPath(f.out), unanswerable, command)
	return nil
}

// writingTokens estimates the input and output tokens for writing one question.
const writingTokens = 1500

// questionWriter returns the model that writes questions, or nil if they are made by grammar.
func (a *app) questionWriter(ctx context.Context, f initFlags, shown *progress) (starter.Writer, error) {
	if f.local {
		return nil, nil
	}
	set, err := a.settings()
	if err != nil {
		return nil, err
	}
	models, err := set.Models(ctx)
	if err != nil || models.Roles[role.GeneratorRole] == nil {
		return nil, err
	}
	w := &watchedWriter{Prompted: starter.Prompted{Model: models.Roles[role.GeneratorRole]}, shown: shown, all: f.questions}
	shown.clear()
	fmt.Fprintf(a.stderr, "%s by %s: about %s tokens\n", count(f.questions, "question", "questions"), w.Model.Model(), thousands(f.questions*writingTokens))
	return w, a.agree(ctx, f.yes)
}

// A watchedWriter reports its progress.
type watchedWriter struct {
	starter.Prompted
	shown     *progress
	done, all int
}

// Write implements starter.Writer.
func (w *watchedWriter) Write(ctx context.Context, p starter.Passage) (starter.Written, bool, error) {
	w.shown.update("writing questions: %d passages read, %d questions wanted", w.done, w.all)
	w.done++
	return w.Prompted.Write(ctx, p)
}
