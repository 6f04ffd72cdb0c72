package assay

// An Original is the file that a version of a document was read from. Stores keep those whose pages
// can be shown as pictures: PDF files and images. It is not part of the identity of a version.
type Original struct {
	Media string // media type, as in "application/pdf"; empty: there is no original
	Data  []byte
}
