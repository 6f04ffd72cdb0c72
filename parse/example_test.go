package parse_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay/parse"
)

func ExampleParse() {
	page := `<html><head><title>Leave</title></head><body><h1>Leave</h1><p>Five days may be <b>carried over</b>.</p></body></html>`
	doc, err := parse.Parse(context.Background(), parse.Input{Type: "text/html", Data: []byte(page)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(doc.Type, doc.Title)
	for _, b := range doc.Blocks {
		fmt.Printf("%s: %s\n", b.Kind, doc.Text[b.Start:b.End])
	}

	_, err = parse.Parse(context.Background(), parse.Input{Name: "plan.pdf", Data: []byte("%PDF-1.7")})
	fmt.Println(errors.Is(err, parse.ErrDamaged), err)
	// Output:
	// html Leave
	// heading: Leave
	// paragraph: Five days may be carried over.
	// true parse plan.pdf: not a readable PDF: damaged
}
