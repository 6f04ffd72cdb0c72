package pdfium

import (
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// readAnnotations reads the links, notes and form fields of the page.
func (r *pageReader) readAnnotations() error {
	n := int(int32(r.in.call(r.ctx, "FPDFPage_GetAnnotCount", uint64(r.page))))
	if n > maxAnnots {
		return fmt.Errorf("%w: %d annotations on a page, want at most %d", ErrTooLarge, n, maxAnnots)
	}
	for i := range n {
		if r.in.err != nil || r.ctx.Err() != nil {
			break
		}
		a := r.in.call(r.ctx, "FPDFPage_GetAnnot", uint64(r.page), uint64(i))
		if a == 0 {
			continue
		}
		r.annotation(a)
		r.in.call(r.ctx, "FPDFPage_CloseAnnot", a)
	}
	return nil
}

func (r *pageReader) annotation(a uint64) {
	kind := AnnotationKind(int32(r.in.get("FPDFAnnot_GetSubtype", a)))
	var box Box
	if r.in.get("FPDFAnnot_GetRect", a, r.in.at(0)) != 0 {
		box = r.box(r.in.float(0), r.in.float(12), r.in.float(8), r.in.float(4))
	}
	const hidden = 1 << 1
	if kind == AnnotationPopup || r.in.get("FPDFAnnot_GetFlags", a)&hidden != 0 {
		return
	}
	switch kind {
	case AnnotationLink:
		r.link(a, box)
	case AnnotationWidget:
		r.field(a, box)
	default:
		if text := r.entry(a, "Contents"); strings.TrimSpace(text) != "" {
			r.out.Annotations = append(r.out.Annotations, Annotation{Box: box, Kind: kind, Text: text})
		}
	}
}

// entry returns a string in the dictionary of an annotation.
func (r *pageReader) entry(a uint64, key string) string {
	name := r.in.alloc(r.ctx, len(key)+1)
	defer r.in.free(name)
	r.in.write(name, append([]byte(key), 0))
	return r.in.utf16(r.ctx, "FPDFAnnot_GetStringValue", a, uint64(name))
}

func (r *pageReader) link(a uint64, box Box) {
	const (
		actionGoTo = 1
		actionURI  = 3
	)
	link := r.in.get("FPDFAnnot_GetLink", a)
	if link == 0 {
		return
	}
	out := Link{Box: box}
	dest := r.in.call(r.ctx, "FPDFLink_GetDest", uint64(r.doc), link)
	if action := r.in.get("FPDFLink_GetAction", link); action != 0 {
		switch r.in.get("FPDFAction_GetType", action) {
		case actionURI:
			out.URI = r.in.text(r.ctx, "FPDFAction_GetURIPath", uint64(r.doc), action)
		case actionGoTo:
			if dest == 0 {
				dest = r.in.call(r.ctx, "FPDFAction_GetDest", uint64(r.doc), action)
			}
		}
	}
	if dest != 0 {
		out.Page = max(0, int(int32(r.in.call(r.ctx, "FPDFDest_GetDestPageIndex", uint64(r.doc), dest)))+1)
	}
	if out.URI != "" || out.Page > 0 {
		r.out.Links = append(r.out.Links, out)
	}
}

// field reads a form field that has a value.
func (r *pageReader) field(a uint64, box Box) {
	if r.form == 0 {
		return
	}
	form := uint64(r.form)
	out := Annotation{Box: box, Kind: AnnotationWidget, Field: FieldKind(int32(r.in.call(r.ctx, "FPDFAnnot_GetFormFieldType", form, a)))}
	switch out.Field {
	case FieldPushButton, FieldSignature:
		return
	case FieldCheckBox, FieldRadioButton:
		if r.in.call(r.ctx, "FPDFAnnot_IsChecked", form, a) != 0 {
			out.Text = "checked"
		}
	default:
		out.Text = r.in.utf16(r.ctx, "FPDFAnnot_GetFormFieldValue", form, a)
	}
	if strings.TrimSpace(out.Text) == "" {
		return
	}
	out.Name = r.in.utf16(r.ctx, "FPDFAnnot_GetFormFieldAlternateName", form, a)
	if strings.TrimSpace(out.Name) == "" {
		out.Name = r.in.utf16(r.ctx, "FPDFAnnot_GetFormFieldName", form, a)
	}
	r.out.Annotations = append(r.out.Annotations, out)
}

// readStructure reads the part of the structure tree for the page.
func (r *pageReader) readStructure() error {
	if r.in.call(r.ctx, "FPDFCatalog_IsTagged", uint64(r.doc)) == 0 {
		return nil
	}
	tree := r.in.call(r.ctx, "FPDF_StructTree_GetForPage", uint64(r.page))
	if tree == 0 {
		return nil
	}
	n := int(int32(r.in.call(r.ctx, "FPDF_StructTree_CountChildren", tree)))
	for i := range n {
		if r.in.err != nil || r.ctx.Err() != nil {
			break
		}
		if h := r.in.get("FPDF_StructTree_GetChildAtIndex", tree, uint64(i)); h != 0 {
			if e := r.element(h, 0); e != nil {
				r.out.Structure = append(r.out.Structure, e)
			}
		}
	}
	r.in.call(r.ctx, "FPDF_StructTree_Close", tree)
	return nil
}

// element reads an element and those below it. It returns nil beyond the limits; the text is in
// the page's characters in any case.
func (r *pageReader) element(h uint64, depth int) *Element {
	if r.elements++; r.elements > maxElements || depth > maxTreeDepth || r.in.err != nil || r.ctx.Err() != nil {
		return nil
	}
	e := &Element{
		Type:       r.in.utf16(r.ctx, "FPDF_StructElement_GetType", h),
		Title:      r.in.utf16(r.ctx, "FPDF_StructElement_GetTitle", h),
		Alt:        r.in.utf16(r.ctx, "FPDF_StructElement_GetAltText", h),
		ActualText: r.in.utf16(r.ctx, "FPDF_StructElement_GetActualText", h),
		Language:   r.in.utf16(r.ctx, "FPDF_StructElement_GetLang", h),
		ID:         r.in.utf16(r.ctx, "FPDF_StructElement_GetID", h),
	}
	switch e.Type {
	case "TH", "TD":
		r.cell(h, e)
	}
	n := int(int32(r.in.get("FPDF_StructElement_CountChildren", h)))
	for i := range n {
		if r.elements > maxElements {
			break
		}
		if child := r.in.get("FPDF_StructElement_GetChildAtIndex", h, uint64(i)); child != 0 {
			if below := r.element(child, depth+1); below != nil {
				e.Children = append(e.Children, Child{Element: below, MCID: notMarked})
			}
			continue
		}
		if mcid := int(int32(r.in.get("FPDF_StructElement_GetChildMarkedContentID", h, uint64(i)))); mcid >= 0 {
			e.Children = append(e.Children, Child{MCID: mcid})
		}
	}
	return e
}

// cell reads the attributes of a table's cell.
func (r *pageReader) cell(h uint64, e *Element) {
	n := int(int32(r.in.get("FPDF_StructElement_GetAttributeCount", h)))
	for i := range min(n, 16) {
		attributes := r.in.get("FPDF_StructElement_GetAttributeAtIndex", h, uint64(i))
		if attributes == 0 {
			continue
		}
		e.RowSpan = max(e.RowSpan, r.span(attributes, "RowSpan"))
		e.ColSpan = max(e.ColSpan, r.span(attributes, "ColSpan"))
		if v := r.attribute(attributes, "Scope"); v != 0 {
			r.in.clear(8)
			if r.in.get("FPDF_StructElement_Attr_GetStringValue", v, r.in.at(8), 64, r.in.at(0)) != 0 {
				e.Scope = decodeUTF16(r.in.read(r.in.scratch+8, int(min(r.in.integer(0), 64))))
			}
		}
	}
}

func (r *pageReader) attribute(attributes uint64, name string) uint64 {
	const place = scratchSize - 32
	r.in.write(r.in.scratch+place, append([]byte(name), 0))
	return r.in.get("FPDF_StructElement_Attr_GetValue", attributes, r.in.at(place))
}

func (r *pageReader) span(attributes uint64, name string) int {
	v := r.attribute(attributes, name)
	if v == 0 || r.in.get("FPDF_StructElement_Attr_GetNumberValue", v, r.in.at(0)) == 0 {
		return 0
	}
	n := api.DecodeF32(uint64(r.in.integer(0)))
	if !(n >= 1 && n <= 1000) {
		return 0
	}
	return int(n)
}
