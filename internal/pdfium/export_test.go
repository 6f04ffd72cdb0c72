package pdfium

import (
	"context"
	"time"
)

// Crash makes the next call of d fail as if PDFium had run into a trap.
func Crash(d *Document) { d.in.call(context.Background(), "FPDF_GetPageCount", 0xfffffff0) }

// SetLimit sets the most time of a call of d.
func SetLimit(d *Document, limit time.Duration) { d.limit = limit }
