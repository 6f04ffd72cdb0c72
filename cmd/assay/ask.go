package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/strategy"
)

// askFlags are the flags of ask.
type askFlags struct {
	json, trace bool
	local       bool
	filter      string
	request     engine.Request
}

func (a *app) askCommand() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "ask [--docs PATH...] \"QUESTION\"",
		Short: "Answer a question from your documents",
		Long: `Ask searches the documents, writes an answer from the passages that it finds and
verifies every claim against the words it cites. Claims that fail are left out.
If the documents do not answer the question, ask reports what it searched and
the closest passages, and exits with 3.

With --docs, ask reads the documents into a store of their own first. Otherwise
it uses the store that assay ingest fills. A configured language model receives
the question and the passages found; --local prevents that. Progress goes to
standard error. Without a QUESTION, or with -, ask reads it from standard input.`,
		Example: `  assay ask --docs ./handbook "How many days of leave may I carry over?"
  assay ask "Who approves travel?" --filter 'team = "legal" and year >= 2022'
  assay ask --follow last "And who approves expenses?"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBudgetFlags(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("follow") && strings.TrimSpace(f.request.Follows) == "" {
				return hinted{usagef("--follow names no run"), "assay runs lists them; last is the newest"}
			}
			return a.ask(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print the answer as one JSON object")
	flags.BoolVar(&f.trace, "trace", false, "print each step and the unverified drafts on standard error")
	flags.BoolVar(&f.request.Web, "web", false, "let auto, corrective and crag search the web with the question")
	flags.BoolVar(&f.local, "local", false, "call no language model and no provider's reranker")
	flags.StringVar(&f.request.Strategy, "strategy", "", "answer with this `strategy`; help lists them (default auto)")
	flags.StringVar((*string)(&f.request.Mode), "mode", "", "effort: quick (half the limits) or thorough (double)")
	flags.StringVar(&f.request.Follows, "follow", "", "continue the conversation of this `run`: an ID, a prefix, or last")
	flags.StringArrayVar(&f.request.Collections, "collection", nil, "search only this `collection`; may be repeated")
	flags.StringVar(&f.filter, "filter", "", "search only documents whose metadata match this `filter`")
	budgetFlags(cmd, &f.request.Budget)
	flags.StringVar((*string)(&f.request.Review), "review", "", "let a person decide first: policy (default), always or never")
	flags.BoolVar(&f.request.NoCache, "no-cache", false, "answer again even if the same question was answered before")
	_ = cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions(strategyCompletions(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]cobra.Completion{
		cobra.CompletionWithDesc(string(strategy.Quick), "half the limits"), cobra.CompletionWithDesc(string(strategy.Thorough), "double the limits"),
	}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("follow", func(cmd *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeRuns(cmd, nil, text)
	})
	return cmd
}

// budgetFlags adds the flags that bound a run.
func budgetFlags(cmd *cobra.Command, b *assay.Budget) {
	flags := cmd.Flags()
	flags.IntVar(&b.Iterations, "iterations", 0, "at most `n` searches for each part of the question (default 4)")
	flags.DurationVar(&b.Wall, "timeout", 0, "total time (default 12s, with language models 2m)")
	flags.IntVar(&b.Calls, "max-calls", 0, "at most `n` model calls, including failed ones (default no limit)")
	flags.IntVar(&b.Tokens, "max-tokens", 0, "at most `n` input and output tokens (default no limit)")
	flags.Int64Var(&b.CostMicros, "max-cost", 0, "at most `n` millionths of the currency; needs configured prices")
}

// checkBudgetFlags rejects a limit of 0, which a request takes as unset.
func checkBudgetFlags(cmd *cobra.Command) error {
	for _, limit := range []string{"iterations", "timeout", "max-calls", "max-tokens", "max-cost"} {
		if given := cmd.Flags().Lookup(limit); given.Changed && (given.Value.String() == "0" || given.Value.String() == "0s") {
			return hinted{usagef("--%s is 0, which allows no work", limit), "omit it for the default or for no limit; use --local for no model calls"}
		}
	}
	return nil
}

// modelFlag adds --model.
func (a *app) modelFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.models, "model", nil, "call `[ROLE=]MODEL`, as in generator=openai/gpt-6-luna; may be repeated")
}

// ask answers one question and prints the answer.
func (a *app) ask(ctx context.Context, f askFlags, args []string) error {
	if f.request.Strategy == strategyHelp {
		return a.listStrategies()
	}
	req := f.request
	req.Local = f.local
	var err error
	if req.Question, err = a.question(ctx, args); err != nil {
		return err
	}
	if req.Filter, err = parseFilter(f.filter); err != nil {
		return err
	}
	shown := a.progress()
	defer shown.clear()
	n := answering
	if f.local {
		n = searching
	}
	e, err := a.openToAsk(ctx, shown, n, f.trace)
	if err != nil {
		return err
	}
	defer e.Close()
	a.warn(shown)
	if req.Follows != "" {
		if req.Follows, err = findAnswered(ctx, e, req.Follows); err != nil {
			return fmt.Errorf("--follow: %w", err)
		}
	}
	return a.answer(e.Ask(ctx, assay.Local(), req), shown, f)
}

// answer follows a run to its end and prints the answer.
func (a *app) answer(events iter.Seq2[engine.Event, error], shown *progress, f askFlags) error {
	draft := &draft{trace: f.trace}
	for ev, err := range events {
		switch {
		case err != nil:
			shown.clear()
			return a.hintResume(err)
		case ev.Kind == engine.RunEnded:
			shown.end()
			if f.trace {
				fmt.Fprintf(a.stderr, "%s\n", runLine(*ev.Answer))
				for _, n := range ev.Answer.Notes {
					if aboutCoverage(n) {
						fmt.Fprintln(a.stderr, n.Text)
					}
				}
				fmt.Fprintln(a.stderr)
			}
			return a.printAnswer(*ev.Answer, f.json)
		case ev.Kind == engine.Draft:
			draft.add(ev)
			shown.update("writing, not verified yet: %s …", count(draft.size(), "character", "characters"))
		case f.trace && ev.Kind == engine.StepEnded:
			fmt.Fprintln(a.stderr, traceLine(*ev.Step))
			draft.print(a.stderr, ev.Step.Path)
		case f.trace:
		case ev.Kind == engine.RunStarted:
			shown.update("updating the index …")
		case ev.Kind == engine.StepStarted:
			shown.update("%s …", ev.Step.Summary)
		case ev.Kind == engine.StepEnded && worthNoting[ev.Step.Kind]:
			shown.note("%s: %s", ev.Step.Kind, ev.Step.Summary)
		}
	}
	return errors.New("the run ended without an answer")
}

// A draft collects what a model writes as it arrives. Only a trace prints its text.
type draft struct {
	trace bool
	path  string
	text  strings.Builder
}

func (d *draft) add(ev engine.Event) {
	if ev.Path != d.path { // a retry, or another part
		d.text.Reset()
		d.path = ev.Path
	}
	d.text.WriteString(ev.Draft)
}

// size returns the number of characters so far.
func (d *draft) size() int { return utf8.RuneCountInString(d.text.String()) }

// print prints the draft of a finished call, marked as unverified. It skips blank lines, because
// models under a grammar constraint write many.
func (d *draft) print(w io.Writer, path string) {
	if d.trace && path == d.path && d.text.Len() > 0 {
		for line := range strings.Lines(d.text.String()) {
			if line = strings.TrimRight(line, " \t\r\n"); line != "" {
				fmt.Fprintf(w, "           unverified draft | %s\n", line)
			}
		}
		d.text.Reset()
	}
}

// worthNoting lists the kinds of step whose results are shown as progress.
var worthNoting = map[assay.StepKind]bool{
	assay.StepPlan: true, assay.StepSearch: true, assay.StepGrade: true, assay.StepVerify: true,
	assay.StepWeb: true,
}

// printAnswer prints an answer and returns the error with its exit code.
func (a *app) printAnswer(answer assay.Answer, asJSON bool) error {
	var err error
	if asJSON {
		err = writeJSON(a.stdout, answer)
	} else {
		err = writeAnswer(a.stdout, answer, a.width)
	}
	if by := byLine(answer); err == nil && by != "" && !asJSON {
		if stoodIn(answer) {
			by += "; to check the models, run: assay doctor"
		}
		err = a.stdout.faint("\n"+wrap(by, "", a.width), a.faintOut)
	}
	if err == nil && !asJSON {
		if more := a.followLine(answer); more != "" {
			err = a.stdout.faint("\n"+wrap(more, "", a.width), a.faintOut)
		}
	}
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return end(answer.Status.ExitCode())
}

// question returns the question from the last argument or standard input.
func (a *app) question(ctx context.Context, args []string) (string, error) {
	switch {
	case len(args) > 1 && len(a.docs) > 0:
		a.docs = append(a.docs, args[:len(args)-1]...) // --docs A B "question"
		args = args[len(args)-1:]
	case len(args) > 1:
		return "", hinted{usagef("got %d arguments, want one question", len(args)), "put the question in quotes"}
	}
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	switch {
	case a.readsDocument():
		return "", usagef("standard input is a document; give the question as an argument")
	case len(args) == 0 && !a.piped:
		return "", hinted{usagef("no question"), `for example: assay ask "Who approves travel?"`}
	}
	data, err := a.readStdin(ctx, engine.MaxQuestionBytes+1)
	if err != nil {
		return "", fmt.Errorf("read the question from standard input: %w", err)
	}
	return string(bytes.TrimSpace(data)), nil
}

// parseFilter parses --filter. Text that begins with "{" is JSON.
func parseFilter(text string) (assay.Filter, error) {
	var f assay.Filter
	var err error
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		err = f.UnmarshalJSON([]byte(text))
	} else {
		f, err = assay.ParseFilter(text)
	}
	if err != nil {
		return f, fmt.Errorf("--filter: %w", err)
	}
	return f, nil
}

// hintResume adds the resume command to the error of a run that can be resumed.
func (a *app) hintResume(err error) error {
	stopped, ok := errors.AsType[*engine.RunError](err)
	if !ok || !stopped.Resumable {
		return err
	}
	again := "assay resume " + stopped.Run
	for _, m := range a.models {
		again += " --model " + shellQuote(m)
	}
	if a.config != "" {
		again += " --config " + shellQuote(a.config)
	}
	return hinted{err, "continue with: " + again + a.sameStore()}
}

// sameStore returns the flags that name the store this command works on.
func (a *app) sameStore() string {
	flags := ""
	for _, d := range a.docs {
		flags += " --docs " + shellQuote(d)
	}
	if len(a.docs) == 0 {
		flags += a.sameLocation()
	}
	if a.tenant != "" {
		flags += " --tenant " + shellQuote(a.tenant)
	}
	return flags
}

// shellQuote quotes s for a POSIX shell if necessary.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("-_./:@%+=,~", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// traceLine formats a step of a trace: its time, kind, path and result.
func traceLine(s engine.Step) string {
	line := fmt.Sprintf("%9s  %-8s  %-32s  %s", duration(s.Elapsed), s.Kind, s.Path, s.Summary)
	if s.Replayed {
		line += " (from the journal)"
	}
	return line
}

// runLine formats the last line of a trace.
func runLine(a assay.Answer) string {
	return fmt.Sprintf("%9s  run %s: %s (%s), %s, %s: %s", duration(time.Duration(a.ElapsedMS)*time.Millisecond),
		a.Run, a.Status, a.Stop, a.Strategy, count(a.Usage.Searches, "search", "searches"), a.Justification)
}

// duration formats d for people, in milliseconds below a second.
func duration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
