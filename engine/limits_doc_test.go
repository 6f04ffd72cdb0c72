package engine

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// TestLimitsDoc checks the tables of docs/limits.md: an engine has the methods that it names, and the
// ranges are those of the code.
func TestLimitsDoc(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	_, methods, _ := strings.Cut(doc, "| method of `engine.Engine` | |\n")
	methods, _, _ = strings.Cut(methods, "\n\n")
	for row := range strings.SplitSeq(methods, "\n") {
		names, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for name := range strings.SplitSeq(names, ",") {
			name = strings.Trim(name, " `")
			if _, ok := reflect.TypeFor[*Engine]().MethodByName(name); !ok && !strings.HasPrefix(name, "-") {
				t.Errorf("docs/limits.md names the method %q, which an engine does not have", name)
			}
		}
	}
	var table strings.Builder
	table.WriteString("| field | highest value |\n| --- | --- |\n")
	fmt.Fprintf(&table, "| `question` | %d bytes |\n| `collections` | %d names of %d bytes |\n| `history` | %d turns, %d bytes |\n",
		MaxQuestionBytes, MaxCollections, MaxNameBytes, maxGivenTurns, maxGivenBytes)
	ranges := append(append(BudgetRanges(assay.Budget{}), strategy.Limits{}.Ranges()...), strategy.Settings{}.Ranges()...)
	for _, r := range ranges {
		fmt.Fprintf(&table, "| `%s` | %s |\n", r.Name, r.MostText())
	}
	if !strings.Contains(doc, table.String()) {
		t.Errorf("docs/limits.md lacks this table:\n%s", table.String())
	}
}
