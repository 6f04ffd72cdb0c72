// Package folder reads a folder of this machine as a source. It follows the rules of source.Walk:
// ignore files, hidden files, symbolic links and sidecars.
package folder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/watch"
	"github.com/assay-rag/assay/source"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name: "folder", Short: "a folder of this machine", Target: "PATH",
		Help: `Reads the files below PATH as assay ingest does: .gitignore and .assayignore are honoured,
and NAME.EXT.metadata.json beside NAME.EXT gives a document its metadata and ACL. A file is
read again if its size or its modification time changes. A folder can be watched.`,
		Options: []source.Option{
			{Name: "exclude", Help: "skip files that match these .gitignore patterns, separated by newlines"},
			{Name: "hidden", Default: "false", Help: "true: include names that start with a dot"},
		},
		SweepOnly: true,
		Absolute:  filepath.Abs,
		Open:      open,
	}
}

// racyWindow is the age that a file must have when it is listed so that its size and time prove
// that it has not changed since. The coarsest file-system clock in use (FAT) ticks every 2 s.
const racyWindow = 2 * time.Second

type folder struct {
	config source.Config
	root   string
	opts   source.Options

	mu    sync.Mutex
	files map[string]source.File // found by the sweeps, by URI
}

var _ source.Watcher = (*folder)(nil)

func open(_ context.Context, c source.Config) (source.Source, error) {
	if c.Target == "" || c.Target == "-" {
		return nil, fmt.Errorf("target %q is no path of a folder: %w", c.Target, assay.ErrInvalid)
	}
	root, err := filepath.Abs(c.Target)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w: %w", c.Target, err, assay.ErrInvalid)
	}
	hidden := c.Options["hidden"]
	if hidden != "true" && hidden != "false" {
		return nil, fmt.Errorf("option hidden is %q, want true or false: %w", hidden, assay.ErrInvalid)
	}
	c = c.WithDefaults()
	f := &folder{config: c, root: root, files: map[string]source.File{}}
	f.opts = source.Options{MaxFileBytes: c.MaxBytes, Hidden: hidden == "true"}
	for pattern := range strings.SplitSeq(c.Options["exclude"], "\n") {
		if pattern != "" {
			f.opts.Exclude = append(f.opts.Exclude, pattern)
		}
	}
	return f, nil
}

func (f *folder) Changes(ctx context.Context, _ string) iter.Seq2[source.Change, error] {
	return source.ChangesOf(f.Sweep(ctx))
}

func (f *folder) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		for file, err := range source.Walk(ctx, []string{f.root}, f.opts) {
			if errors.Is(err, source.ErrEmpty) {
				return
			}
			var item source.Item
			if err == nil {
				item, err = f.item(file)
			}
			_, skipped := source.AsSkip(err)
			if !yield(item, err) || err != nil && !skipped {
				return
			}
		}
	}
}

// item describes a file.
func (f *folder) item(file source.File) (source.Item, error) {
	sidecar, err := file.Sidecar()
	if err != nil {
		return source.Item{}, err
	}
	f.mu.Lock()
	f.files[file.URI] = file
	f.mu.Unlock()
	item := source.Item{
		URI: file.URI, Name: path.Base(file.Rel), ACL: sidecar.ACL, Size: file.SizeBytes,
		Metadata: assay.Metadata{assay.MetaPath: assay.ListValue(strings.Split(file.Rel, "/")...)},
	}
	for key, value := range sidecar.Metadata {
		item.Metadata[key] = value
	}
	if age := f.config.Now().Sub(file.Modified); !file.Modified.IsZero() && age >= racyWindow {
		item.Version = fmt.Sprintf("%d-%d", file.SizeBytes, file.Modified.UnixNano())
	}
	return item, nil
}

func (f *folder) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	f.mu.Lock()
	file, ok := f.files[item.URI]
	f.mu.Unlock()
	if !ok {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Vanished, Detail: "is no longer below the folder"}
	}
	return file.Read(ctx)
}

// Watch implements source.Watcher.
func (f *folder) Watch(ctx context.Context, changed func()) error {
	return watch.Folders(ctx, []string{f.root}, changed)
}

func (f *folder) Close() error { return nil }
