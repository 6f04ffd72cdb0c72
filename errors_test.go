package assay_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

func TestErrorCodes(t *testing.T) {
	tests := map[string]struct {
		err          error
		exit, status int
	}{
		"":               {nil, 0, 200},
		"unknown":        {errors.New("x"), 1, 500},
		"cancelled":      {context.Canceled, 130, 499},
		"timed out":      {context.DeadlineExceeded, 1, 504},
		"ErrInvalid":     {assay.ErrInvalid, 2, 400},
		"ErrNotFound":    {assay.ErrNotFound, 1, 404},
		"ErrBudget":      {assay.ErrBudget, 1, 422},
		"ErrDeadline":    {assay.ErrDeadline, 1, 504},
		"ErrLocked":      {assay.ErrLocked, 7, 409},
		"ErrLeased":      {assay.ErrLeased, 7, 409},
		"ErrReadOnly":    {assay.ErrReadOnly, 1, 503},
		"ErrFull":        {assay.ErrFull, 1, 507},
		"ErrNewer":       {assay.ErrNewer, 8, 500},
		"ErrForeign":     {assay.ErrForeign, 8, 500},
		"ErrDamaged":     {assay.ErrDamaged, 8, 500},
		"ErrDiverged":    {assay.ErrDiverged, 8, 409},
		"ErrUnavailable": {assay.ErrUnavailable, 1, 502},
		"ErrSuspended":   {assay.ErrSuspended, 6, 409},

		"ErrUnauthenticated": {assay.ErrUnauthenticated, 10, 401},
		"ErrForbidden":       {assay.ErrForbidden, 10, 403},
		"ErrQuota":           {assay.ErrQuota, 10, 429},
		"ErrStopped":         {assay.ErrStopped, 10, 503},
		"ErrBusy":            {assay.ErrBusy, 10, 503},
		"ErrChanged":         {assay.ErrChanged, 1, 412},
		"ErrCancelled":       {assay.ErrCancelled, 1, 409},
		"ErrReused":          {assay.ErrReused, 2, 422},
	}
	for name, tt := range tests {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("do a thing: %w", err)
		}
		if got := assay.ExitCode(err); got != tt.exit {
			t.Errorf("ExitCode(%s) = %d, want %d", name, got, tt.exit)
		}
		if got := assay.StatusCode(err); got != tt.status {
			t.Errorf("StatusCode(%s) = %d, want %d", name, got, tt.status)
		}
	}
	for _, name := range declaredErrors(t) {
		if _, ok := tests[name]; !ok {
			t.Errorf("%s has no row in this test", name)
		}
	}
}

// declaredErrors returns the names of the kinds in errors.go.
func declaredErrors(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	return names
}

func TestStatusExitCode(t *testing.T) {
	for status, want := range map[assay.Status]int{
		assay.Answered: 0, assay.NotFound: 3, assay.Incomplete: 4, assay.Conflicting: 5, assay.PendingReview: 6, assay.Rejected: 6, "other": 1,
	} {
		if got := status.ExitCode(); got != want {
			t.Errorf("exit code of %s = %d, want %d", status, got, want)
		}
	}
}
