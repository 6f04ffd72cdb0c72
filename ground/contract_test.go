package ground_test

import (
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/ground/groundtest"
)

func TestLocalContract(t *testing.T) {
	groundtest.Run(t, groundtest.Subject{Open: func(*testing.T) groundtest.Judge { return groundtest.Of(ground.Local{}) }})
}
