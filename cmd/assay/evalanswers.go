package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/answers"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// answersFlags are the flags of eval answers.
type answersFlags struct {
	docs       []string
	strategies []string
	out        string
	limit      int
	parallel   int
	local      bool
	localSet   bool // --local was given
	words      bool
	yes        bool
	cache      string
	judge      string
	measures   string

	baseline, gate, writeBaseline string

	files reportFiles
	json  bool
}

func (f *answersFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.docs, "docs", nil, "ask about the documents at this `path`; may be repeated")
	flags.StringSliceVar(&f.strategies, "strategy", nil, "strategies to use, by `name`; the others are compared with the first")
	flags.StringVar(&f.out, "out", "", "keep outcomes in this `folder` (default: one in the cache folder)")
	flags.IntVar(&f.limit, "limit", 0, "ask only the first `n` questions (default: all)")
	flags.IntVar(&f.parallel, "parallel", 0, "ask `n` questions at a time (default: one per processor)")
	flags.BoolVar(&f.local, "local", false, "call no language model (default for golden questions)")
	flags.BoolVar(&f.words, "words", false, "make no vectors: search by words alone")
	flags.BoolVar(&f.yes, "yes", false, "call paid models without asking for confirmation")
	flags.StringVar(&f.judge, "judge", "local", "judge of the answers: `local|model|off`")
	flags.StringVar(&f.cache, "cache", "", "keep vectors in this `folder` (default: one in the cache folder)")
	flags.StringVar(&f.measures, "measures", "", "YAML `file` that defines measures of your own, scored by a model")
	flags.StringVar(&f.baseline, "baseline", "", "compare with this `file`, written by --write-baseline")
	flags.StringVar(&f.gate, "gate", "", "exit with 9 if a figure is worse than this `file` allows")
	flags.StringVar(&f.writeBaseline, "write-baseline", "", "write the figures to this `file` for later comparisons")
	flags.StringVar(&f.files.html, "report", "", "write an HTML page with plots and every question to this `file`")
	flags.StringVar(&f.files.csv, "csv", "", "write one row per question and strategy to this CSV `file`")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON, with every outcome")
}

// of returns the flags as they were given.
func (f *answersFlags) of(cmd *cobra.Command) answersFlags {
	f.localSet = cmd.Flags().Changed("local")
	return *f
}

func (a *app) evalAnswersCommand() *cobra.Command {
	var f answersFlags
	cmd := &cobra.Command{
		Use:   "answers SET",
		Short: "Ask the questions of a set and measure the answers",
		Long: `Answers asks each question of SET and measures retrieval, citations, claims, refusals and
cost (docs/measures.md). For each wrong answer it names the step that failed. SET is a
folder in the BEIR layout, a file of questions, golden questions, or runs corrected after
assay runs export (docs/formats.md).

Before paid models are called, it estimates the cost and asks for confirmation. Run the
same command again to resume an interrupted evaluation.`,
		Example: `  assay eval answers questions.jsonl --strategy static,corrective --report report.html
  assay eval answers questions.jsonl --baseline baseline.json --gate gate.yaml`,
		Args: oneArgument("SET"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.evalAnswers(cmd.Context(), f.of(cmd), args[0]) },
	}
	f.add(cmd)
	return cmd
}

// An evaluating is one evaluation of complete answers.
type evaluating struct {
	app   *app
	flags answersFlags
	path  string // of the set
	set   testset.Dataset
	shown *progress

	baseline *answers.Baseline
	gate     *answers.Gate

	contenders []answers.Contender
	measures   []judge.Prompt // defined by the user
	judge      judge.Judge    // nil: none
	folder     *answers.Folder
	at         location // of the documents that questions are asked of
	own        bool     // the store belongs to the evaluation
	kept       bool     // the user named the folder
}

func (a *app) evalAnswers(ctx context.Context, f answersFlags, path string) error {
	v := &evaluating{app: a, flags: f, path: path, shown: a.progress()}
	defer v.shown.clear()
	if err := v.read(); err != nil {
		return err
	}
	if err := v.open(ctx); err != nil {
		return err
	}
	defer v.folder.Close()
	if err := v.tryFiles(); err != nil {
		return err
	}
	if err := v.ask(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			return hinted{err, "all answers so far are kept; run the same command to continue"}
		}
		return err
	}
	return v.report(ctx)
}

// read reads the set and its baseline, and checks the flags, before any question is asked.
func (v *evaluating) read() error {
	f := &v.flags
	switch {
	case f.limit < 0:
		return usagef("--limit %d is negative", f.limit)
	case f.parallel < 0:
		return usagef("--parallel %d is negative", f.parallel)
	case !slices.Contains([]string{"local", "model", "off"}, f.judge):
		return usagef("--judge is %q, want one of local, model, off", f.judge)
	case f.gate != "" && f.baseline == "" && f.writeBaseline == "":
		return hinted{usagef("--gate needs --baseline"), "create one with --write-baseline FILE"}
	case f.measures != "" && f.judge == "off":
		return usagef("--measures needs a judge, and --judge is off")
	}
	v.shown.update("reading %s", v.path)
	var err error
	if f.measures != "" {
		if v.measures, err = judge.ReadPrompts(f.measures); err != nil {
			return err
		}
	}
	if v.set, err = testset.ReadDataset(v.path); err != nil {
		return hintedField(err)
	}
	if v.set.Corpus != nil && len(f.docs) > 0 {
		return usagef("%s has its own passages; use --docs only with sets that have none", v.path)
	}
	if v.set.Golden && !f.localSet {
		f.local = true
	}
	if f.baseline != "" {
		b, err := answers.ReadBaseline(f.baseline)
		if err != nil {
			return err
		}
		v.baseline = &b
	}
	if f.gate != "" {
		g, err := answers.ReadGate(f.gate)
		if err != nil {
			return err
		}
		v.gate = &g
		if err := v.knownMeasures(); err != nil {
			return err
		}
	}
	for _, name := range f.strategies {
		if _, err := strategy.Lookup(name); err != nil {
			return err
		}
	}
	return nil
}

// tryFiles rejects files that cannot be written, before any paid call.
func (v *evaluating) tryFiles() error {
	f := v.flags
	for _, path := range []string{f.files.html, f.files.csv, f.files.figures, f.writeBaseline} {
		if err := tryFile(path); err != nil {
			return err
		}
	}
	return nil
}

// hintedField adds similar field names to the error for an unknown field.
func hintedField(err error) error {
	e, ok := errors.AsType[*testset.UnknownFieldError](err)
	if !ok {
		return err
	}
	if near := config.Similar(e.Field, e.Known); len(near) > 0 {
		return hinted{err, "did you mean " + strings.Join(near, ", ") + "?"}
	}
	return hinted{err, "the fields are " + strings.Join(e.Known, ", ") + "; put all other data of a question under metadata"}
}

// open opens the folder of the evaluation. A complete evaluation in a folder that the user did not
// name starts over.
func (v *evaluating) open(ctx context.Context) error {
	cache, err := v.cacheDir()
	if err != nil {
		return err
	}
	set, err := v.app.settings()
	if err != nil {
		return err
	}
	if len(v.flags.strategies) == 0 {
		v.flags.strategies = []string{cmp.Or(set.Config().Strategy, strategy.Names()[0])}
	}
	for _, name := range v.flags.strategies {
		v.contenders = append(v.contenders, answers.Contender{Name: name, Request: engine.Request{Strategy: name, Local: v.flags.local}})
	}
	identity, err := v.identity(ctx)
	if err != nil {
		return err
	}
	if err := v.identifyIndex(ctx, identity); err != nil {
		return err
	}
	dir := v.flags.out
	if v.kept = dir != ""; !v.kept {
		dir = filepath.Join(cache, strings.Map(plainName, v.set.Name)+"-"+shortHash(identity))
	}
	if v.folder, err = answers.OpenFolder(ctx, dir, identity); err != nil {
		if errors.Is(err, assay.ErrInvalid) {
			return hinted{err, "name another folder with --out"}
		}
		return err
	}
	if v.own {
		v.at = localDir(filepath.Join(dir, "store"))
	}
	if !v.kept && v.folder.Holds(v.set, v.flags.limit, v.flags.strategies...) {
		if v.own {
			err = os.RemoveAll(v.at.dir)
		}
		err = errors.Join(err, v.folder.Empty(identity))
	}
	return err
}

// cacheDir returns the folder for evaluations and vectors.
func (v *evaluating) cacheDir() (string, error) {
	if v.flags.cache != "" {
		return v.flags.cache, nil
	}
	cache, err := v.app.cacheDir()
	if err != nil {
		return "", hinted{fmt.Errorf("find the user's cache folder: %w", err), "name one with --cache"}
	}
	v.flags.cache = filepath.Join(cache, "assay", "eval")
	return v.flags.cache, nil
}

// identity returns the identity of the evaluation: the set and everything that determines the
// answers.
func (v *evaluating) identity(ctx context.Context) (answers.Identity, error) {
	id := answers.Identity{Set: v.set.Name, Hash: v.set.Hash, Config: map[string]string{"version": version()}}
	v.own = v.set.Corpus != nil || len(v.flags.docs) > 0
	if !v.own {
		at, err := v.app.location(ctx)
		if err != nil {
			return id, err
		}
		if at.dir, err = filepath.Abs(at.dir); err != nil {
			return id, err
		}
		v.at = at
		id.Config["data"] = at.String()
	}
	for i, d := range v.flags.docs {
		whole, err := filepath.Abs(d)
		if err != nil {
			return id, err
		}
		if _, err := os.Stat(whole); err != nil {
			return id, usagef("--docs %s: no such file or folder", d)
		}
		id.Config[fmt.Sprintf("docs %d", i+1)] = whole
		if err := v.apart(whole); err != nil {
			return id, err
		}
		if id.Config[fmt.Sprintf("documents %d", i+1)], err = contentsOf(ctx, whole); err != nil {
			return id, err
		}
	}
	if v.flags.words && v.own {
		id.Config["vectors"] = "none"
	}
	configured, err := v.app.engineConfig(ctx, v.at, v.needs())
	if err != nil {
		return id, err
	}
	for _, name := range slices.Sorted(maps.Keys(configured.Models.Roles)) {
		id.Config["role "+name] = configured.Models.Roles[name].Model()
	}
	if v.judge, err = v.judgeOf(ctx); err != nil {
		return id, err
	}
	if v.judge != nil {
		id.Config["judge"] = v.judge.Name()
	}
	for _, p := range v.measures {
		id.Config["measure "+p.Name] = fmt.Sprintf("%q from %v to %v", p.Prompt, p.Scale[0], p.Scale[1])
	}
	tuned, err := json.Marshal(map[string]any{"limits": configured.Limits, "settings": configured.Settings})
	if err != nil {
		return id, err
	}
	id.Config["tuned"] = string(tuned)
	return id, nil
}

func shortHash(id answers.Identity) string {
	data, err := json.Marshal(id)
	if err != nil {
		panic("assay: an identity is made of texts: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:5])
}

func (v *evaluating) needs() needs {
	if v.flags.local {
		return searching
	}
	return answering
}

// ask opens the store, brings in the documents if they are the evaluation's own, and asks the
// remaining questions.
func (v *evaluating) ask(ctx context.Context) error {
	if v.folder.Holds(v.set, v.flags.limit, v.flags.strategies...) {
		return nil
	}
	e, err := v.engine(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	opts := answers.Options{
		Contenders: v.contenders, Limit: v.flags.limit, Parallel: v.flags.parallel, Principal: assay.Local(), Judge: v.judge,
		Progress: func(p eval.Progress) { v.shown.update("%s", evalProgress(p)) },
	}
	if err := v.confirm(ctx, e, opts); err != nil {
		return err
	}
	if err := v.embed(ctx, e); err != nil {
		return err
	}
	return answers.AskAll(ctx, e, v.set, v.folder, opts)
}

// confirm prints the estimated cost and asks the user to agree.
func (v *evaluating) confirm(ctx context.Context, e *engine.Engine, opts answers.Options) error {
	wanted := v.needs()
	if judge.Calls(v.judge) > 0 {
		wanted = answering
	}
	c, err := v.app.engineConfig(ctx, v.at, wanted)
	if err != nil {
		return err
	}
	asked := answers.Asked{Engine: c}
	if asked.Encoder, asked.Unembedded, err = v.paidEncoder(ctx, e, c); err != nil {
		return err
	}
	estimate, err := answers.EstimateSpending(ctx, v.set, v.folder, opts, asked)
	if err != nil || estimate.Free() {
		return err
	}
	v.shown.clear()
	fmt.Fprintln(v.app.stderr, estimateWords(estimate))
	return v.app.agree(ctx, v.flags.yes)
}

// paidEncoder returns the store's encoder if it is a service, with the estimated tokens of the
// passages it has yet to embed. It returns nil if there is no cost.
func (v *evaluating) paidEncoder(ctx context.Context, e *engine.Engine, c engine.Config) (llm.Embedder, int, error) {
	set, err := v.app.settings()
	if err != nil || c.Encoders == nil || v.own && (v.flags.words || !set.Config().HasProvider(c.Encoders.Default())) {
		return nil, 0, err
	}
	vectors, err := e.Vectors(ctx)
	name := cmp.Or(vectors.Wanted, vectors.Serving)
	if err != nil || !set.Config().HasProvider(name) {
		return nil, 0, err
	}
	encoder, err := c.Encoders.Open(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	tokens := 0
	if v.own { // any other store is not changed
		for entry, err := range e.Entries(ctx, assay.Local()) {
			if err != nil {
				return nil, 0, err
			}
			tokens += llm.EstimateTokens(entry.Document.Text)
		}
	}
	return encoder, int(float64(tokens) * (1 - vectors.Coverage(name))), nil
}

// agree asks the user to agree to the printed estimate, unless yes is set.
func (a *app) agree(ctx context.Context, yes bool) error {
	switch {
	case yes:
		return nil
	case a.piped:
		return hinted{usagef("paid language models would be called"), "confirm with --yes, or call none with --local"}
	}
	fmt.Fprint(a.stderr, "Continue? [y/N] ")
	reply, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if said := strings.ToLower(strings.TrimSpace(reply)); said != "y" && said != "yes" {
		return end(exitInterrupted)
	}
	return nil
}

// estimateWords describes the estimated cost and its basis.
func estimateWords(e answers.Estimate) string {
	by := "from typical runs of the strategy"
	switch {
	case e.Measured:
		by = "from the questions asked so far"
	case e.Tried > 0:
		by = fmt.Sprintf("from %s asked of scripted models", count(e.Tried, "question", "questions"))
	}
	cost := "cost unknown: the configuration does not have a price for every model"
	if e.Priced {
		cost = "at the highest configured price about " + money(e.CostMicros) + " of the configured currency"
	}
	asked := "no language model"
	if e.Calls > 0 {
		asked = fmt.Sprintf("about %s model calls and %s tokens", thousands(e.Calls), thousands(e.Tokens))
	}
	said := fmt.Sprintf("%s: %s, %s", count(e.Questions, "question", "questions"), asked, by)
	for _, s := range e.Services {
		said += fmt.Sprintf("; %s by %s", s.Does, s.Model)
		if s.Calls > 0 {
			said += fmt.Sprintf(", about %s calls", thousands(s.Calls))
		}
		if s.Tokens > 0 {
			said += fmt.Sprintf(", %s tokens", thousands(s.Tokens))
		}
	}
	return said + "; " + cost
}

// readLine reads a line of standard input, or returns when ctx ends.
func (a *app) readLine(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() { // a blocked read cannot be canceled: it ends with the process
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// engine opens the store, with its documents.
func (v *evaluating) engine(ctx context.Context) (_ *engine.Engine, err error) {
	if !v.own {
		return v.app.openToAsk(ctx, v.shown, v.needs(), false)
	}
	c, err := v.app.engineConfig(ctx, v.at, v.needs())
	if err != nil {
		return nil, err
	}
	switch {
	case v.flags.words:
		c.Encoders = nil
	case c.Encoders != nil:
		c.Encoders = retrieval.CachedEncoders{Encoders: c.Encoders, Dir: v.flags.cache}
	}
	c.Tenant = store.DefaultTenant // the store is the evaluation's own
	e, err := engine.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if v.set.Corpus != nil {
		v.shown.update("storing %s", count(len(v.set.Corpus.Passages), "passage", "passages"))
		if err := retrieval.Ingest(ctx, e, *v.set.Corpus); err != nil {
			return nil, err
		}
	} else if _, err := e.Ingest(ctx, engine.IngestRequest{Paths: v.flags.docs, Progress: v.shown.ingest}); err != nil {
		return nil, err
	}
	return e, nil
}

// embed makes the vectors of the evaluation's own documents.
func (v *evaluating) embed(ctx context.Context, e *engine.Engine) error {
	if !v.own || v.flags.words || v.app.installed == nil {
		return nil
	}
	_, err := e.Embed(ctx, v.shown.embed)
	return err
}
