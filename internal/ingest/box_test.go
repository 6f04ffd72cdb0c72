package ingest

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/parse"
)

// box returns the content of a container file for boxWalk: names and contents by turns.
func box(namesAndContents ...string) string {
	var b strings.Builder
	for i := 0; i < len(namesAndContents); i += 2 {
		fmt.Fprintf(&b, "%s\x01%s\x02", namesAndContents[i], namesAndContents[i+1])
	}
	return b.String()
}

// boxWalk is parse.Walk for a test format of containers: a file whose name ends in ".box" contains
// only documents, and one whose name ends in ".mail" is text as well, up to its first newline.
func boxWalk(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
	return walkBox(ctx, in, "", yield)
}

func walkBox(ctx context.Context, in parse.Input, at string, yield func(parse.Parsed) error) error {
	data := string(in.Data)
	var p parse.Parsed
	switch {
	case strings.HasSuffix(in.Name, ".box"):
		p.Document.Type = "box"
	case strings.HasSuffix(in.Name, ".mail"):
		var text string
		text, data, _ = strings.Cut(data, "\n")
		p.Document, p.Err = parse.Parse(ctx, parse.Input{Name: in.Name + ".txt", Data: []byte(text)})
	default:
		p.Document, p.Err = parse.Parse(ctx, in)
		data = ""
	}
	if p.Path = at; at != "" {
		p.Data = in.Data
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := yield(p); err != nil {
		return err
	}
	for _, part := range strings.SplitAfter(data, "\x02") {
		name, content, ok := strings.Cut(strings.TrimSuffix(part, "\x02"), "\x01")
		if !ok {
			continue
		}
		inside := name
		if at != "" {
			inside = at + "!/" + name
		}
		if err := walkBox(ctx, parse.Input{Name: name, Data: []byte(content)}, inside, yield); err != nil {
			return err
		}
	}
	return nil
}
