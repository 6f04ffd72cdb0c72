package prompted_test

import (
	"fmt"

	"github.com/assay-rag/assay/internal/role/prompted"
)

func ExampleParseDomain() {
	domain, err := prompted.ParseDomain("legal.md", []byte(`---
name: legal
about: contracts and statutes
---

## Vocabulary
- lessee: tenant

## Answer sections
- Rule: what the clause says, in its words
- Dates and deadlines
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(domain.Name(), domain.Sections())

	_, err = prompted.ParseDomain("legal.md", []byte("---\nname: legal\n---\n## Rules\n"))
	fmt.Println(err)
	// Output:
	// legal [Rule Dates and deadlines]
	// legal.md:4: unknown heading "rules"; want "Vocabulary", "Entities", "Answer sections" or "House rules": invalid request
}
