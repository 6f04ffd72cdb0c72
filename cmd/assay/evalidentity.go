package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/answers"
)

// identifyIndex adds the index version of an existing store to the identity of an evaluation. The
// store's documents may have changed, and an evaluation must not continue with answers from other
// documents.
func (v *evaluating) identifyIndex(ctx context.Context, identity answers.Identity) (err error) {
	if v.own {
		return nil
	}
	e, err := v.engine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	found, err := v.probe(ctx, e)
	if err != nil {
		return err
	}
	sequence, err := e.Sequence(ctx)
	if err == nil {
		identity.Config["index"] = indexName(sequence, found)
	}
	return err
}

// probe makes one search to learn the index version.
func (v *evaluating) probe(ctx context.Context, e *engine.Engine) (assay.IndexVersion, error) {
	found, err := e.Search(ctx, assay.Local(), assay.Query{Text: v.set.Cases[0].Question, Limit: 1})
	return found.Index, err
}

// indexName formats an index version for the identity.
func indexName(sequence int64, v assay.IndexVersion) string {
	return fmt.Sprintf("%d, %s %.4f", sequence, v.Model, v.Coverage)
}

// apart returns an error if the folder of the evaluation is in a folder of documents, since it
// would be ingested as well.
func (v *evaluating) apart(docs string) error {
	if v.flags.out == "" {
		return nil
	}
	out, err := filepath.Abs(v.flags.out)
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(docs, out)
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) || inside != "." && hidden(inside) {
		return nil
	}
	return hinted{usagef("--out %s lies in --docs %s, and would be read as documents", v.flags.out, docs), "name a folder outside it, or one that begins with a dot"}
}

// hidden reports whether a path has an element that begins with a dot.
func hidden(path string) bool {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// contentsOf returns a hash of the contents of a file, or of all files of a folder except hidden
// ones.
func contentsOf(ctx context.Context, path string) (string, error) {
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch {
		case inside != "." && hidden(inside) && d.IsDir():
			return filepath.SkipDir
		case inside != "." && hidden(inside), !d.Type().IsRegular():
			return nil
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			fmt.Fprintf(sum, "%s\x00%d\x00", filepath.ToSlash(inside), info.Size())
			_, err = io.Copy(sum, f)
		}
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return "", fmt.Errorf("read the documents: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
