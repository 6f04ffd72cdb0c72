package source_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/assay-rag/assay/source"
)

// Walk a folder. Skipped files do not end the walk.
func ExampleWalk() {
	dir, err := os.MkdirTemp("", "source")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{".gitignore": "*.log\n", "leave.md": "# Leave\n", "build.log": "done\n", "large.txt": "many words\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}

	ctx := context.Background()
	for f, err := range source.Walk(ctx, []string{dir}, source.Options{MaxFileBytes: 10}) {
		if skip, ok := errors.AsType[*source.Skip](err); ok {
			fmt.Println("skipped:", filepath.Base(source.Path(skip.URI)), skip.Reason)
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		content, err := f.Read(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %q\n", f.Rel, content.Data)
	}
	// Output:
	// skipped: large.txt too_large
	// leave.md: "# Leave\n"
}
