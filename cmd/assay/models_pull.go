package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/models"
)

func (a *app) modelsPullCommand() *cobra.Command {
	var asJSON bool
	var req models.PullRequest
	cmd := &cobra.Command{
		Use:   "pull NAME|OWNER/REPOSITORY|URL|FOLDER",
		Short: "Install an encoder from a mirror, a URL or a folder",
		Long: `Pull installs an encoder: config.json, model.safetensors, tokenizer.json or vocab.txt,
and the other files that describe it. A NAME (assay models list --known) or an
OWNER/REPOSITORY is fetched from Hugging Face, or from the mirror in --mirror or
$ASSAY_MIRROR. A URL is a folder with these files on any web server. A FOLDER is copied,
which is how a model is installed on a computer without a network.

Run the same command again to continue an interrupted download. Files are checked
against SHA256SUMS if the source has it, and the weights against --sha256. The encoder
is installed only after it has opened and made a vector. Its checksums are stored and
checked each time it opens.`,
		Example: `  assay models pull e5-small-v2
  assay models pull bge-small-en-v1.5 --mirror https://mirror.example.com
  assay models pull https://files.example.com/models/our-encoder --sha256 8131c6f8…
  assay models pull /media/usb/all-MiniLM-L6-v2`,
		Args: oneArgument("NAME, OWNER/REPOSITORY, URL or FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.What = args[0]
			return a.modelsPull(cmd.Context(), req, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	flags.StringVar(&req.Name, "name", "", "install it under this `name`")
	flags.StringVar(&req.Mirror, "mirror", "", "fetch names from this `URL` (default $ASSAY_MIRROR, or "+models.DefaultMirror+")")
	flags.StringVar(&req.SHA256, "sha256", "", "required SHA-256 `sum` of model.safetensors")
	flags.BoolVar(&req.Replace, "replace", false, "replace an installed model of this name")
	return cmd
}

func (a *app) modelsPull(ctx context.Context, req models.PullRequest, asJSON bool) error {
	if req.Mirror == "" {
		req.Mirror = a.getenv("ASSAY_MIRROR")
	}
	if isDefault(req.Name) || isDefault(req.What) && req.Name == "" {
		return usagef("%s is the name of the built-in encoder; choose another with --name", cmp.Or(req.Name, req.What))
	}
	folder, err := a.modelsFolder()
	if err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	folder.Client = func(base string) *http.Client { return set.Config().Downloads(base).Client(0) }
	shown := a.progress()
	defer shown.clear()
	rate := rateSince(time.Now())
	req.Progress = func(p models.Progress) { shown.pull(p, rate) }
	m, err := folder.Pull(ctx, req)
	shown.clear()
	if err != nil {
		return hintPull(err)
	}
	if asJSON {
		return writeJSON(a.stdout, m)
	}
	_, err = fmt.Fprintf(a.stdout, "installed %s in %s: %d dimensions, %.1f MB, SHA-256 of the weights %s\nuse it with: assay models use %s\n",
		m.Model, folder.Path(m.Name), m.Dimensions, float64(m.Bytes())/1e6, m.WeightsSHA256(), m.Name)
	return err
}

// hintPull adds a remedy to the error of a failed pull.
func hintPull(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return hinted{err, "the files fetched so far are kept; run the same command to continue"}
	case errors.Is(err, assay.ErrReadOnly):
		return hinted{err, "make it writable, or name another folder with ASSAY_MODELS"}
	case errors.Is(err, assay.ErrFull):
		return hinted{err, "free some space and run the same command to continue, or name another folder with ASSAY_MODELS"}
	case errors.Is(err, assay.ErrDamaged):
		return hinted{err, "nothing was installed"}
	}
	return err
}

// pull shows the progress of a download.
func (p *progress) pull(at models.Progress, rate func(done int64) string) {
	switch {
	case at.Problem != nil:
		p.note("%v; trying again", at.Problem)
	case at.Total > 0:
		p.update("%s: %.1f of %.1f MB, %d%%%s", at.File, float64(at.Done)/1e6, float64(at.Total)/1e6, at.Done*100/at.Total, rate(at.Done))
	default:
		p.update("%s: %.1f MB%s", at.File, float64(at.Done)/1e6, rate(at.Done))
	}
}

// rateSince returns a function that formats the download rate. It counts the bytes of each file
// from the first progress report on, so that bytes fetched earlier do not count.
func rateSince(start time.Time) func(done int64) string {
	first, last := int64(-1), int64(-1)
	return func(done int64) string {
		if first < 0 || done < last {
			first, start = done, time.Now()
		}
		last = done
		took := time.Since(start)
		if took < time.Second {
			return ""
		}
		return fmt.Sprintf(", %.1f MB a second", float64(done-first)/1e6/took.Seconds())
	}
}

func (a *app) modelsQuantiseCommand() *cobra.Command {
	var asJSON bool
	var out string
	var bits int
	cmd := &cobra.Command{
		Use:   "quantise FOLDER --out FOLDER",
		Short: "Shrink an encoder to between a quarter and half of its size",
		Long: `Quantise reads an encoder with 16-bit or 32-bit weights and writes it to a new folder
with 8-bit weights and a token table of --table-bits. The output is reproducible byte for
byte; the built-in encoder was made this way. SHA256SUMS in the new folder lists the
checksums.`,
		Example: `  assay models quantise ./bge-base-en-v1.5 --out ./bge-base-int8
  assay models pull ./bge-base-int8`,
		Args: oneArgument("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return hinted{usagef("--out is missing"), "for example: --out ./encoder-int8"}
			}
			return a.modelsQuantise(cmd.Context(), args[0], out, bits, asJSON)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this `folder`, which must be new or empty")
	cmd.Flags().IntVar(&bits, "table-bits", models.DefaultTableBits, "`bits` per number in the token table, 4 to 8")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list of the files")
	return cmd
}

func (a *app) modelsQuantise(ctx context.Context, src, out string, bits int, asJSON bool) error {
	files, err := models.Quantise(ctx, src, out, bits)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, files)
	}
	for _, f := range files {
		fmt.Fprintf(a.stdout, "%s  %9d  %s\n", f.SHA256, f.Bytes, filepath.Join(out, filepath.FromSlash(f.Name)))
	}
	return nil
}
