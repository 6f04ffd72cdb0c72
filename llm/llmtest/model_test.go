package llmtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm/llmtest"
)

func TestToyKeepsTheContract(t *testing.T) { llmtest.TestModel(t, toyWire("")) }

// flawVariable is the environment variable with the flaw that a subprocess tests.
const flawVariable = "ASSAY_TOY_FLAW"

// TestFlawed is run by TestSuiteFindsFlaws, in subprocesses that must fail.
func TestFlawed(t *testing.T) {
	flaw := os.Getenv(flawVariable)
	if flaw == "" {
		t.Skip("run by TestSuiteFindsFlaws")
	}
	llmtest.TestModel(t, toyWire(flaw))
}

// TestSuiteFindsFlaws checks that the suite detects each flaw of the toy provider.
func TestSuiteFindsFlaws(t *testing.T) {
	tests := map[string]string{ // flaw: a test that must fail
		"drops the system text":     "TestFlawed/whole/requests/conversation",
		"key in the address":        "TestFlawed/whole/requests/question",
		"tells secrets":             "TestFlawed/stream/secrets",
		"follows redirects":         "TestFlawed/whole/failures/redirect",
		"reads everything":          "TestFlawed/stream/ends/too_large",
		"takes a part for all":      "TestFlawed/stream/hostile/cut",
		"keeps the stream":          "TestFlawed/stream/replies/as_it_arrives",
		"trips over comments":       "TestFlawed/stream/replies/framing",
		"times out as another kind": "TestFlawed/whole/ends/silence_before_the_reply",
		"no wait":                   "TestFlawed/whole/failures",
		"asks again":                "TestFlawed/whole/failures/server_error",
		"turns calls round":         "TestFlawed/stream/replies/calls",
		"no estimate":               "TestFlawed/whole/replies/no_count_of_tokens",
	}
	for flaw, failing := range tests {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(failing, "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), flawVariable+"="+flaw)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+failing) {
				t.Errorf("%v, and no failure of %s:\n%s", err, failing, out)
			}
		})
	}
}
