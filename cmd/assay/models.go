package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/internal/models"
	"github.com/assay-rag/assay/provider/embedded"
)

// defaultModel is the short name of the encoder in the binary.
const defaultModel = "default"

func (a *app) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "Install sentence encoders and choose one",
		Long: `Searches use the words of passages and their meaning, which a sentence encoder turns
into vectors. An English encoder is built in. Models manages others: BERT encoders with
WordPiece vocabularies, such as all-MiniLM, bge, e5 and gte. Language models are
configured, not installed (docs/models.md).

Encoders are installed in $ASSAY_MODELS, or in the user's cache directory, and shared by
all data directories. Each data directory selects one with assay models use, or an
embedding model of a configured provider.

Only assay models pull connects to the network, unless a provider is configured; to list
the providers in use, run assay doctor --offline.`,
		Example: `  assay models list
  assay models pull bge-small-en-v1.5
  assay models use bge-small-en-v1.5
  assay ingest --wait ./handbook`,
	}
	cmd.AddCommand(a.modelsListCommand(), a.modelsPullCommand(), a.modelsUseCommand(), a.modelsRemoveCommand(), a.modelsQuantiseCommand())
	return cmd
}

func (a *app) modelsListCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the installed encoders",
		Long: `List prints the installed encoders with their dimensions, size on disk and languages, and
the share of the passages in this data directory that have their vectors. * marks the
encoder whose vectors are searched; > marks the one that replaces it once all passages
have its vectors.`,
		Example: `  assay models list
  assay models list --known
  assay models list --data /srv/assay --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.modelsList(cmd.Context(), all, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	cmd.Flags().BoolVar(&all, "known", false, "list the encoders that can be pulled by name")
	return cmd
}

// listedModel is an encoder in a list.
type listedModel struct {
	Name       string   `json:"name"`
	Model      string   `json:"model"`
	Dimensions int      `json:"dimensions,omitempty"`
	MaxTokens  int      `json:"max_tokens,omitempty"`
	Bytes      int64    `json:"bytes,omitempty"`
	Languages  []string `json:"languages"`
	Source     string   `json:"source,omitempty"`
	Installed  bool     `json:"installed"`

	// In the data directory; zero if there is none.
	Wanted   bool     `json:"wanted"`
	Serving  bool     `json:"serving"`
	Coverage *float64 `json:"coverage,omitempty"` // share of the passages, in [0, 1]
}

func (a *app) modelsList(ctx context.Context, known, asJSON bool) error {
	if known {
		return a.listKnown(asJSON)
	}
	folder, err := a.modelsFolder()
	if err != nil {
		return err
	}
	there, err := folder.List()
	if err != nil {
		return err
	}
	list := []listedModel{{
		Name: defaultModel, Model: embedded.Model, Dimensions: embedded.Dimensions, MaxTokens: embedded.MaxTokens,
		Bytes: embedded.Bytes(), Languages: []string{embedded.Language}, Source: "built in", Installed: true,
	}}
	for _, m := range there {
		languages := m.Languages
		if languages == nil {
			languages = []string{}
		}
		list = append(list, listedModel{
			Name: m.Name, Model: m.Model, Dimensions: m.Dimensions, MaxTokens: m.MaxTokens,
			Bytes: m.Bytes(), Languages: languages, Source: m.Source, Installed: true,
		})
	}
	list, problem, err := a.withCoverage(ctx, list)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	for _, m := range list {
		fmt.Fprintln(a.stdout, modelLine(m))
	}
	if problem != "" {
		fmt.Fprintf(a.stdout, "the encoder in use cannot be opened: %s\n", problem)
	}
	return nil
}

// withCoverage adds the state of the models in the data directory, if it exists. It also adds
// models that are not installed but whose vectors the directory holds.
func (a *app) withCoverage(ctx context.Context, list []listedModel) ([]listedModel, string, error) {
	at, err := a.location(ctx)
	if err != nil {
		return nil, "", err
	}
	if at.missing() {
		return list, "", nil
	}
	e, err := a.openEngine(ctx, at, searching)
	if err != nil {
		return nil, "", err
	}
	defer e.Close()
	status, err := e.Vectors(ctx)
	if err != nil {
		return nil, "", err
	}
	seen := map[string]bool{}
	for i := range list {
		m := &list[i]
		seen[m.Model] = true
		m.Wanted, m.Serving = m.Model == status.Wanted, m.Model == status.Serving
		if status.Chunks > 0 {
			share := status.Coverage(m.Model)
			m.Coverage = &share
		}
	}
	for _, c := range status.Models {
		if !seen[c.Model] {
			share := status.Coverage(c.Model)
			list = append(list, listedModel{
				Name: strings.Split(c.Model, "@")[0], Model: c.Model, Languages: []string{},
				Wanted: c.Model == status.Wanted, Serving: c.Model == status.Serving, Coverage: &share,
			})
		}
	}
	return list, status.Problem, nil
}

// modelLine formats one line of the list.
func modelLine(m listedModel) string {
	mark := " "
	switch {
	case m.Serving:
		mark = "*"
	case m.Wanted:
		mark = ">"
	}
	line := fmt.Sprintf("%s %-26s  %-34s", mark, m.Name, m.Model)
	if !m.Installed {
		line += "  not installed"
	} else {
		languages := strings.Join(m.Languages, " ")
		if languages == "" {
			languages = "-"
		}
		line += fmt.Sprintf("  %4d dimensions  %6.1f MB  %s", m.Dimensions, float64(m.Bytes)/1e6, languages)
	}
	if m.Coverage != nil {
		line += fmt.Sprintf("  vectors of %s", percent(*m.Coverage))
	}
	return line
}

// percent formats a share. Only a complete share is 100% and only an empty one is 0%.
func percent(share float64) string {
	switch {
	case share >= 1:
		return "100%"
	case share <= 0:
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", min(99, max(1, share*100)))
}

func (a *app) listKnown(asJSON bool) error {
	all := models.AllKnown()
	if asJSON {
		return writeJSON(a.stdout, all)
	}
	for _, k := range all {
		fmt.Fprintf(a.stdout, "%-28s  about %3d MB  %s  %-12s  %s\n", k.Name, k.MB, strings.Join(k.Languages, " "), k.Licence, k.Path)
	}
	return nil
}
