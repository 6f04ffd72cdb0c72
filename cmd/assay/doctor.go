package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/role"
)

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the data directory and the configured models",
		Long: `Doctor checks that the data directory exists and is writable, that its databases belong
to assay and have a supported version, that the index is up to date, that the encoder
opens, that no journal is damaged, and that the disk has space. It also reports who is
writing to the directory and how many passages have vectors.

It lists the language model of each role and where that was configured. It tries each
model with one very small call, embedding models and rerankers included, and reports
each fault with a remedy. It shows where a key comes from, but never the key.

Doctor changes nothing. It exits with 0 if all checks pass, and otherwise with the code
of the first check that failed.`,
		Example: `  assay doctor
  assay doctor --offline           # list the models without calling them
  assay doctor --data /srv/assay --json
  ASSAY_MODEL=bedrock assay doctor --iam-policy`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print a JSON list")
	flags.BoolVar(&f.offline, "offline", false, "list the models without calling them")
	flags.BoolVar(&f.policy, "iam-policy", false, "print the minimal IAM policy for the configured Bedrock resources and exit")
	return cmd
}

// hintDoctor adds to the error of damaged data a command that examines it. The store of --docs can
// be rebuilt from the documents.
func (a *app) hintDoctor(err error) error {
	if _, has := errors.AsType[hinted](err); has || !errors.Is(err, assay.ErrDamaged) {
		return err
	}
	hint := "see: assay doctor" + a.sameStore()
	if len(a.docs) > 0 {
		hint += "; if you remove the folder, the documents are read again"
	}
	return hinted{err, hint}
}

// doctorFlags are the flags of doctor.
type doctorFlags struct{ json, offline, policy bool }

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	if f.policy {
		return a.printPolicy(ctx)
	}
	shown := a.progress()
	defer shown.clear()
	checks, err := a.checkData(ctx, f.offline)
	if err != nil {
		return err
	}
	checks = append(checks, ofEngine(a.checkCache()))
	checks = append(checks, a.checkSearches()...)
	checks = append(checks, a.checkRedis(ctx, f.offline)...)
	if !f.json {
		err = writeChecks(a.stdout, checks, a.width)
	}
	if !f.offline {
		shown.update("trying the models, for up to %s …", config.MaxTrial)
	}
	models := a.checkModels(ctx, f.offline)
	shown.clear()
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	checks = append(checks, models...)
	if f.json {
		err = writeJSON(a.stdout, checks)
	} else {
		err = writeChecks(a.stdout, models, a.width)
	}
	if err != nil {
		return err
	}
	for _, c := range checks {
		if !c.OK {
			return end(exitCode(c.Err))
		}
	}
	return nil
}

// printPolicy prints the IAM policy for the configured use of Bedrock.
func (a *app) printPolicy(ctx context.Context) error {
	set, err := a.settings()
	if err != nil {
		return err
	}
	policy, err := set.Policy(ctx)
	if errors.Is(err, assay.ErrUnavailable) { // only the lookup of inference profiles calls AWS
		return hinted{err, "set AWS credentials, or list the models in the file under inference_profiles (docs/models.md)"}
	}
	if err != nil {
		return err
	}
	for _, note := range policy.Notes {
		fmt.Fprint(a.stderr, wrap("Note: "+note, "", a.width))
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", bytes.TrimSpace(policy.Document))
	return err
}

// checkData checks the data directory. A missing directory is an error only if it was named.
func (a *app) checkData(ctx context.Context, offline bool) ([]config.Check, error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, err
	}
	if at.missing() && at.dir == defaultData {
		return []config.Check{{Name: "data directory", OK: true, Detail: "none yet in " + at.dir + ": assay ingest creates it; --docs needs none"}}, nil
	}
	c, err := a.engineConfig(ctx, at, searching)
	if err != nil { // checkModels reports the error; check the stored data anyway
		if c, err = a.engineConfig(ctx, at, looking); err != nil {
			return nil, err
		}
	}
	if all, ok := c.Encoders.(allEncoders); ok && offline {
		c.Encoders = offlineEncoders{all}
	}
	var checks []config.Check
	if at.remote.Remote() {
		checks = append(checks, at.checkServer(ctx))
		if !checks[0].OK {
			return checks, nil
		}
	}
	if at.remote.Index == config.OpenSearch {
		check := at.checkIndex(ctx)
		checks = append(checks, check)
		if !check.OK {
			return checks, nil
		}
	}
	for _, check := range engine.Doctor(ctx, c) {
		checks = append(checks, ofEngine(check))
	}
	return checks, nil
}

func ofEngine(c engine.Check) config.Check {
	return config.Check{Name: c.Name, OK: c.OK, Detail: c.Detail, Err: c.Err}
}

// checkModels tries the models and reports their roles.
func (a *app) checkModels(ctx context.Context, offline bool) []config.Check {
	set, err := a.settings()
	if err != nil {
		return []config.Check{{Name: "configuration", Detail: err.Error(), Hint: strings.TrimPrefix(configHint(err), "; "), Err: err}}
	}
	return set.Check(ctx, offline)
}

// writeChecks prints checks for people, one a line, each with its hint below.
func writeChecks(w io.Writer, checks []config.Check, width int) error {
	var b strings.Builder
	for _, c := range checks {
		mark := "ok  "
		if !c.OK {
			mark = "FAIL"
		}
		detail := c.Detail
		if c.Model != "" && c.Model != config.Local {
			detail = c.Model + ": " + detail
		}
		if len(c.Roles) > 0 && c.Name == "model" {
			detail += "; does: " + inShort(c.Roles)
		}
		fmt.Fprintf(&b, "%s  %-18s  %s\n", mark, c.Name, detail)
		if c.Hint != "" {
			b.WriteString(wrap("→ "+c.Hint, "      ", width))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inShort names those of the roles that nearly every question uses, or all roles if none does.
func inShort(roles []string) string {
	usual := []string{role.PlannerRole, role.GraderRole, role.GeneratorRole, role.VerifierRole}
	named := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return !slices.Contains(usual, r) })
	if len(named) == 0 {
		named = roles
	}
	return strings.Join(named, ", ")
}

// checkSearches reports the configured search settings, if there are any. checkModels reports
// configuration errors.
func (a *app) checkSearches() []config.Check {
	set, err := a.settings()
	if err != nil {
		return nil
	}
	var says []string
	l := set.Config().Limits
	if l.VectorWeight > 0 {
		says = append(says, fmt.Sprintf("vector weight %g, text weight %g", l.VectorWeight, math.Round((1-l.VectorWeight)*1e6)/1e6))
	}
	if l.BM25 != (assay.BM25{}) {
		p := l.BM25.Over(assay.DefaultBM25)
		says = append(says, fmt.Sprintf("BM25 has k1 %g and b %g", p.K1, p.B))
	}
	if l.Unranked {
		says = append(says, "reranking is off")
	}
	if l.Floor > 0 {
		says = append(says, fmt.Sprintf("the relevance floor is %g", l.Floor))
	}
	if l.MinAnswerability > 0 {
		says = append(says, fmt.Sprintf("the answerability threshold is %g", l.MinAnswerability))
	}
	if len(says) == 0 {
		return nil
	}
	return []config.Check{{Name: "searches", OK: true, Detail: strings.Join(says, ", ") + ", by " + set.Config().Path}}
}

// checkCache checks that ask --docs can write its stores in the cache directory, or in its nearest
// existing ancestor.
func (a *app) checkCache() engine.Check {
	const name = "cache directory"
	dir, err := a.cacheDir()
	there := dir
	for err == nil {
		if _, statErr := os.Stat(there); !errors.Is(statErr, fs.ErrNotExist) || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	var probe *os.File
	if err == nil {
		probe, err = os.CreateTemp(there, "assay-doctor-*")
	}
	if err != nil {
		return engine.Check{Name: name, Detail: "ask --docs cannot keep its documents: " + err.Error(), Err: err}
	}
	probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return engine.Check{Name: name, Detail: err.Error(), Err: err}
	}
	return engine.Check{Name: name, OK: true, Detail: dir + " can be written"}
}
