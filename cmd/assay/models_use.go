package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/models"
	"github.com/assay-rag/assay/provider/embedded"
)

func (a *app) modelsUseCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "use NAME",
		Short: "Select the encoder of this data directory",
		Long: `Use selects another encoder for the data directory. Searches use the existing vectors
until all passages have new ones; then the old vectors are deleted. Vectors of different
encoders are never compared.

NAME is an installed encoder, default for the built-in one, or PROVIDER/MODEL for an
embedding model of a configured provider. The provider then receives every passage once,
and every question.`,
		Example: `  assay models use bge-small-en-v1.5
  assay models use openai/text-embedding-3-small
  assay models use default --data /srv/assay`,
		Args: oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.modelsUse(cmd.Context(), args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// isDefault reports whether a name is that of the encoder in the binary.
func isDefault(name string) bool {
	return name == defaultModel || name == embedded.Model || name == strings.Split(embedded.Model, "@")[0]
}

func (a *app) modelsUse(ctx context.Context, name string, asJSON bool) error {
	model, source, err := a.findEncoder(name)
	if err != nil {
		return err
	}
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	if at.missing() {
		return a.noData(at)
	}
	e, err := a.openEngine(ctx, at, searching)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.UseEncoder(ctx, model, source); err != nil {
		return err
	}
	status, err := e.Vectors(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, status)
	}
	_, err = fmt.Fprintln(a.stdout, whatFollows(model, status))
	return err
}

// whatFollows describes the state of the vectors after a change of the encoder.
func whatFollows(model string, s engine.VectorStatus) string {
	passages := count(s.Chunks, "passage", "passages")
	switch share := s.Coverage(model); {
	case s.Chunks == 0:
		return model + " will embed the documents as they are ingested"
	case share >= 1:
		return fmt.Sprintf("%s is in use: %s of %s have its vectors", model, percent(share), passages)
	case s.Serving != "" && s.Serving != model:
		return fmt.Sprintf("%s has vectors for %s of %s. Searches use those of %s until all are made; to make the rest now, run: assay ingest --wait",
			model, percent(share), passages, s.Serving)
	default:
		return fmt.Sprintf("%s has vectors for %s of %s. The rest is searched by text until they are made; to make them now, run: assay ingest --wait",
			model, percent(share), passages)
	}
}

// findEncoder returns the full name and the source of the encoder with a name or short name: the
// one in the program, an installed one or a provider's.
func (a *app) findEncoder(name string) (model, source string, err error) {
	if isDefault(name) {
		return embedded.Model, "built in", nil
	}
	if strings.Contains(name, "/") {
		set, err := a.settings()
		if err != nil {
			return "", "", err
		}
		if c := set.Config(); c.HasProvider(name) {
			provider, _, _ := strings.Cut(name, "/")
			return c.EncoderName(name), "the provider " + provider, nil
		}
	}
	m, err := a.findModel(name)
	return m.Model, m.Source, err
}

// findModel returns an installed model. If it does not exist, the error has a hint.
func (a *app) findModel(name string) (models.Installed, error) {
	folder, err := a.modelsFolder()
	if err != nil {
		return models.Installed{}, err
	}
	m, err := folder.Find(name)
	if errors.Is(err, assay.ErrNotFound) {
		return m, hinted{err, "see: assay models list; install with: assay models pull"}
	}
	return m, err
}

func (a *app) modelsRemoveCommand() *cobra.Command {
	var asJSON, force bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove an installed encoder",
		Long: `Rm removes an encoder from the models folder, and the files of an unfinished pull. It
keeps the encoder of this data directory unless --force is given. It does not know about
other data directories: those that use the encoder search by text alone once it is gone.`,
		Example: `  assay models rm e5-small-v2`,
		Args:    oneArgument("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.modelsRemove(cmd.Context(), args[0], force, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	cmd.Flags().BoolVar(&force, "force", false, "remove it even if this data directory uses it")
	return cmd
}

func (a *app) modelsRemove(ctx context.Context, name string, force, asJSON bool) error {
	if isDefault(name) {
		return usagef("the built-in encoder cannot be removed")
	}
	folder, err := a.modelsFolder()
	if err != nil {
		return err
	}
	m, err := folder.Find(name)
	switch {
	case err == nil:
		name = m.Name
		if err := a.checkUnused(ctx, m.Model); err != nil && !force {
			return hinted{err, "choose another with assay models use, or add --force"}
		}
	case !errors.Is(err, assay.ErrNotFound) && !errors.Is(err, assay.ErrDamaged):
		return err
	case strings.ContainsAny(name, "@/"):
		return err
	}
	if err := folder.Remove(name); err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, map[string]string{"removed": name})
	}
	_, err = fmt.Fprintln(a.stdout, "removed "+folder.Path(name))
	return err
}

// checkUnused returns an error if the data directory exists and uses the model.
func (a *app) checkUnused(ctx context.Context, model string) error {
	at, err := a.location(ctx)
	if err != nil {
		return err
	}
	if at.missing() {
		return nil
	}
	e, err := a.openEngine(ctx, at, searching)
	if err != nil {
		return err
	}
	defer e.Close()
	status, err := e.Vectors(ctx)
	if err == nil && (status.Wanted == model || status.Serving == model) {
		err = usagef("%s is in use in %s", model, at)
	}
	return err
}
