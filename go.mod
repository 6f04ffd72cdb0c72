module github.com/assay-rag/assay

go 1.26
