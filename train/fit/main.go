// Command fit fits the weights in the program that are learned from labelled sets, and prints how
// well they do on sets that they were not fitted to:
//
//	go run ./train/fit calibrate -out internal/retrieve/relevance.json SET SET...
//	go run ./train/fit rank -relevance internal/retrieve/relevance.json -reranker internal/rerank/model.json SET SET...
//	go run ./train/fit read SET...
//	go run ./train/fit answerability -out internal/role/local/answerability.json SET...
//
// A SET is a folder in the BEIR layout; see assay eval retrieval --help. Every fit is
// deterministic: equal sets give equal bytes. The reader itself is trained by the programs in
// train/reader. The tests FitVerifier and FitConflicts fit the weights of package ground.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/provider/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

// errUsage is wrapped by errors of the command line.
var errUsage = errors.New("wrong usage")

// A command fits one kind of weights.
type command struct {
	name  string
	does  string
	least int // number of sets
	flags func(*flag.FlagSet) fitter
}

// A fitter fits weights to sets and prints the figures.
type fitter func(ctx context.Context, w io.Writer, sets []testset.Set, parts retrieval.Parts) error

// commands lists the commands in the order of the help.
func commands() []command {
	return []command{
		{"calibrate", "relevance, from the scores and words of hits", 2, calibrateFlags},
		{"rank", "relevance and the reranker", 2, rankFlags},
		{"read", "the weight of the reader in the ranking of hits", 1, readFlags},
		{"answerability", "the probability that passages answer a question", 1, answerabilityFlags},
	}
}

// run runs the command that args name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	all := commands()
	at := -1
	if len(args) > 0 {
		at = slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	}
	if at < 0 {
		fmt.Fprintln(stderr, "usage: fit COMMAND [flags] SET...\n\ncommands:")
		for _, c := range all {
			fmt.Fprintf(stderr, "  %-14s fit %s\n", c.name, c.does)
		}
		return fmt.Errorf("%w: unknown command", errUsage)
	}
	c := all[at]
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: fit %s [flags] SET...\n\nFits %s to labelled sets in the BEIR layout.\n\n", c.name, c.does)
		flags.PrintDefaults()
	}
	encoder := flags.String("encoder", "", "`folder` of another encoder (default: the built-in one)")
	cache := flags.String("cache", "", "keep vectors in this `folder` (default: assay/eval in the user's cache folder)")
	fit := c.flags(flags)
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() < c.least {
		return fmt.Errorf("%w: %d sets, want at least %d", errUsage, flags.NArg(), c.least)
	}
	var sets []testset.Set
	for _, folder := range flags.Args() {
		set, err := testset.ReadSet(folder)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	parts, err := partsOf(ctx, *encoder, *cache, stderr)
	if err != nil {
		return err
	}
	return fit(ctx, stdout, sets, parts)
}

// partsOf opens the encoder, the cache and the reader.
func partsOf(ctx context.Context, encoder, cache string, stderr io.Writer) (retrieval.Parts, error) {
	cache, err := retrieval.CacheDir(cache)
	if err != nil {
		return retrieval.Parts{}, fmt.Errorf("%w; name a folder with -cache", err)
	}
	var embedder llm.Embedder
	if encoder == "" {
		embedder, err = embedded.Open()
	} else {
		embedder, err = local.OpenDir(ctx, encoder, local.Config{})
	}
	if err != nil {
		return retrieval.Parts{}, err
	}
	reader, err := embedded.OpenReader()
	return retrieval.Parts{Embedder: embedder, CacheDir: cache, Reader: reader, Progress: eval.ProgressTo(stderr)}, err
}

// writeModel writes a model in the form in which the program embeds it. An empty file name writes
// nothing.
func writeModel(file string, model any) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(model, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// writeCompact is writeModel for a model with many numbers.
func writeCompact(file string, model any) error {
	if file == "" {
		return nil
	}
	data, err := json.Marshal(model)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
